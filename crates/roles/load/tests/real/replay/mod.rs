//! Logs and lists where a result depends on the clock of the machine, which must not be too busy.

#[path = "../../it/replay/harness.rs"]
mod harness;
mod replaying;
mod secured;
#[path = "../../it/replay/server.rs"]
mod server;
#[path = "../../it/replay/tls_server.rs"]
mod tls_server;
