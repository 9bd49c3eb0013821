//! Network namespaces and the links between them: delay, jitter, loss, rate and queue.
//!
//! A [`Namespace`] is a network stack of its own; [`interface`] and [`route`] configure it. A link consists of two TUN devices in
//! two namespaces and a [`Forwarder`] that carries packets between them by its [`LinkSettings`]; the pure [`model`] decides on
//! each packet. [`probe`] measures a link. Namespaces have no names and devices are not persistent: once the last process that
//! holds a descriptor has ended, however it did, the kernel removes them.
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

pub use forward::{Forwarder, LinkCounts};
pub use model::LossPlan;
pub use namespace::{Namespace, NetError};
pub use settings::{LinkSettings, SettingsError};
