//! Logs and lists, sent to a server that remembers its requests. What is here has the same result however
//! busy the machine is.

mod corpus;
mod harness;
mod recorder;
mod replaying;
mod secured;
mod server;
mod tls_server;
