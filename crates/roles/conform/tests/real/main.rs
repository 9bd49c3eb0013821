//! Cases tried on targets that are simple enough to know what must come of them. They wait for seconds of real time, within which a target and its
//! origin must respond.

mod built_in;
mod careless;
mod mutants;
mod relay;
mod targets;
