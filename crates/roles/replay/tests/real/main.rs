//! Logs and lists where a result depends on the clock of the machine, which must not be too busy.

#[path = "../it/harness.rs"]
mod harness;
mod replaying;
mod secured;
#[path = "../it/server.rs"]
mod server;
#[path = "../it/tls_server.rs"]
mod tls_server;
