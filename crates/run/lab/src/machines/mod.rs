//! Several machines as one: agents that run roles, and the coordinator of a run, over NATS.
//!
//! [`agent`] is `assay agent`: it says what its machine is, runs roles of one run at a time on command, measures its machine
//! meanwhile, and ends everything when it loses its coordinator. [`coordinator`] is the part of `assay run --fleet` that reaches
//! agents: it measures their clocks, starts roles there, and gives the run what they say, as if they were children of it.
//! [`dev_fleet`] starts a server and agents on one host. What is said and how clocks are computed is in [`fleet`].
//!
//! # Several machines
//!
//! `lab` starts a role on this machine, or through `RunPlan::remote` (`lab::remote::RemoteMachines`); a `Role` is the same either way, and the
//! code above it does not depend on where it runs. `lab::machines` implements that interface over NATS: an agent starts the same role processes,
//! with commands and events carried as messages (`machines::fleet::message`). `lab::machines::coordinator::merge` combines the reports of several parts of
//! one role: counts are added, histograms merged. A real proxy on another machine is a role, too (`lab::target_role`). Instants in events are
//! relative to the start, which every machine receives on its own `CLOCK_MONOTONIC`; `machines::fleet::clock` gives the offset with a bound that does not
//! assume equal delays in both directions. Robots receive the bound (`Command::Clock`), and do not call responses wrong or stored within it. An
//! agent ends its roles if nobody requests its clock for 15 s.
//!
//! *Does not:* decide what a run consists of, send requests or serve them, or take commands for programs from
//! the network: an agent runs this program's own roles, and proxies whose descriptions are installed with it.

pub mod agent;
mod background;
pub mod coordinator;
pub mod dev_fleet;
pub mod discovery;
pub mod error;
pub mod fleet;
pub mod login;
mod object_store;
