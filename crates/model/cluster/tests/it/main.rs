//! Balancing policies, the model of a node, and clusters in virtual time.

mod dispatch;
mod simulate;
