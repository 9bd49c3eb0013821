//! Network namespaces and the links between them: delay, jitter, loss, rate and queue.
//!
//! A [`Namespace`] is a network of its own; [`interface`] and [`route`] furnish it. A link is two TUN devices in two
//! namespaces and a [`Forwarder`] that carries packets between them as its [`LinkSettings`] say: what happens to each packet
//! is decided by the pure [`model`]. [`probe`] measures what a link really does. Namespaces have no names and devices are
//! not persistent: when the last process that holds a descriptor of one has ended, however it did, the kernel removes it.
//!
//! *Does not:* know what runs in a namespace (that is `assay-lab`), or touch the machine's own network.

pub mod forward;
pub mod interface;
pub mod model;
pub mod namespace;
mod netlink;
pub mod probe;
mod realtime;
pub mod route;
pub mod settings;

pub use forward::{Counts, Forwarder};
pub use model::LossPlan;
pub use namespace::{Namespace, NetError};
pub use settings::{LinkSettings, SettingsError};
