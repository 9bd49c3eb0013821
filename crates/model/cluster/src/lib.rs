//! Clusters behind a switch: balancing policies and the model of a node ([`dispatch`]), and the simulation of both
//! ([`simulate`]). Pure: time is an argument.
//!
//! # Balancing
//!
//! `cluster::dispatch::Policy` is the interface of all policies: it receives events (servers up and gone, requests started, begun and finished, states
//! reported) and selects a server; the live switch and the simulation call it in the same way, with time as an argument (`Moment`). A policy
//! that needs the state of servers names those to probe (`probes`); its caller probes them and passes on the results (`reported`). Requests in
//! flight are counted by server number and survive a server's absence. `cluster::dispatch::node::Node` returns the time of its next event and is
//! advanced to that moment: a simulation jumps there, a virtual node sleeps until then. Request *n* of client *c* is a pure function of the
//! seed (`cluster::simulate::Stream`), in a simulation and on a network, so all policies receive the same requests. Results of both have one form
//! (`record::cluster`), and one report (`report::policies`): counts and histograms of repetitions are added up in `record`, intervals and gains
//! are computed from them in `report`. The measurements of a node each second are declared once (`measurement::nodes`). Results of clients on
//! several machines carry their histograms and are added in `record::cluster_parts`. A live virtual node keeps the model's exact moments: if it
//! is late, it catches up in the model, and only its response is late; `load::node::Pace` is the only link between the two clocks.

pub mod dispatch;
pub mod simulate;
