//! Logs and lists where a result depends on the clock of the machine, which must not be too busy.

mod replaying;
mod secured;
#[path = "../it/secured_server.rs"]
mod secured_server;
#[path = "../it/sending.rs"]
mod sending;
#[path = "../it/server.rs"]
mod server;
