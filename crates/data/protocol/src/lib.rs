//! The vocabulary of role processes: robots, origins, the built-in proxy, the Collector and the Multiplier.
//!
//! Each role is started with a spec, the document that `assay role NAME SPEC.json` reads ([`load`] for robots and
//! origins, [`proxy`], [`target`], [`evaluation`]). Commands and events are the messages between a running role and its parent
//! ([`message`]), a JSON document per line ([`stdio`]), and [`clock`] counts from the start that they agree on. [`network`] says which addresses may be loaded or requested. [`mark`] is the header field by which robots and origins recognise each other's messages, and [`spread`]
//! assigns robots to caches where there are several.
//!
//! What several machines say to each other is in [`fleet`].
//!
//! *Does not:* run a role, start a process, or store what roles report (that is `assay-record`).

pub mod clock;
pub mod evaluation;
pub mod fleet;
pub mod load;
pub mod mark;
pub mod message;
pub mod network;
pub mod proxy;
pub mod spread;
pub mod stdio;
pub mod target;
