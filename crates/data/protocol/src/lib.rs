//! Messages between role processes and the command that started them.
//!
//! Commands and events ([`message`]) are JSON documents, one per line ([`stdio`]); [`clock`] counts from the start that both sides agree on.
//! [`evaluation`] declares the counters that the Multiplier and the Collector report, [`network`] the addresses that may be loaded or requested.
//!
//! *Does not:* describe a role (the spec that `assay role NAME SPEC.json` reads is in the role's crate), run one, or store what roles
//! report (that is `assay-record`).

pub mod clock;
pub mod evaluation;
pub mod message;
pub mod network;
pub mod stdio;
