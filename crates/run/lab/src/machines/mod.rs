//! Several machines as one: agents that run roles, and the coordinator of a run, over NATS.
//!
//! [`agent`] is `assay agent`: it says what its machine is, runs roles of one run at a time on command, measures its machine
//! meanwhile, and ends everything when it loses its coordinator. [`coordinator`] is the part of `assay run --fleet` that reaches
//! agents: it measures their clocks, starts roles there, and gives the run what they say, as if they were children of it.
//! [`up`] starts a server and agents on one host. What is said and how clocks are computed is in [`assay_protocol::fleet`].
//!
//! *Does not:* decide what a run consists of, send requests or serve them, or take commands for programs from
//! the network: an agent runs this program's own roles, and proxies whose descriptions are installed with it.

pub mod agent;
mod background;
pub mod coordinator;
pub mod error;
pub mod login;
pub mod now;
pub mod roster;
mod stored;
pub mod up;
