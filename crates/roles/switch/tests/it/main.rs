//! The switch between servers that the tests make and raw clients. What is here has the same result however
//! busy the machine is.

mod bodies;
mod certificates;
mod corpus;
mod failing;
mod harness;
mod layer4;
mod layer4_peers;
mod leaving;
mod limits;
mod reloading;
mod secured;
mod serving;
mod slow;
mod upgrade_server;
mod upgrading;
mod watching;
