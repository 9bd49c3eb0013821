//! Clusters behind a switch: balancing policies and the model of a node ([`dispatch`]), and the simulation of both
//! ([`simulate`]). Pure: time is an argument.

pub mod dispatch;
pub mod simulate;
