//! The universe of a workload: what objects there are, what they look like, and which robot requests which, when.
//!
//! A workload is data ([`model::Workload`]); everything that happens in a run follows from it, a seed and a
//! schedule position by pure functions. An object is an id ([`object::ObjectId`]): its size, type,
//! cachability, life cycle and every byte of its body are hashed from it, so nothing is stored per object.
//! A request stream ([`stream::Stream`]) is the same whatever the proxy, the thread or the machine.
//!
//! *Does not:* read a clock, open a socket or a file, know HTTP, or know how a workload was written down
//! (that is `assay-pgl`). Time is an argument; mathematics comes from `libm`, so that the same workload
//! gives the same bits on every machine.

pub mod adaptive;
mod arrivals;
pub mod body;
mod browser;
pub mod cache_assignment;
pub mod closed;
pub mod credentials;
mod curve;
mod decisions;
mod density;
pub mod digest;
pub mod distribution;
pub mod expiry;
pub mod explain;
mod foreign;
mod headers;
mod introductions;
pub mod launch;
mod layout;
mod life;
pub mod mark;
mod mix;
pub mod model;
pub mod object;
pub mod overrides;
mod page;
mod path;
mod periods;
mod picker;
mod points;
mod popularity;
mod private;
mod purpose;
mod ranges;
pub mod rehearse;
mod schedule;
pub mod script;
mod server;
pub mod sessions;
mod specials;
pub mod stream;
pub mod timeline;
mod trace;
pub mod universe;
mod users;
mod validate;
pub mod variants;
mod worlds;
mod xact;

pub use adaptive::AdaptiveClock;
pub use browser::BrowserCache;
pub use closed::ClosedRobot;
pub use credentials::Login;
pub use headers::Cookie;
pub use launch::{Child, Launch, Offered};
pub use life::Life;
pub use object::{MOST_EMBEDDED, Object};
pub use page::Children;
pub use path::{PathError, hex_digits};
pub use purpose::Purpose;
pub use ranges::{ByteRange, Ranges};
pub use sessions::{SessionClock, SessionState};
pub use stream::{STREAM_VERSION, Slice, Stream};
pub use timeline::{Adaptation, Expected, Freeze, PhaseSpan, ScheduleError, Timeline, WorkingSetSize};
pub use universe::{Universe, UniverseError, UniverseOptions};
pub use xact::{Fault, XactId};
