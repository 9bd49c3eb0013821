//! The switch where a result depends on the clock of the machine, which must not be too busy, or on other
//! programs: curl, and h2spec if it is installed.

#[path = "../it/bytes.rs"]
mod bytes;
#[path = "../it/certificates.rs"]
mod certificates;
#[path = "../it/chat.rs"]
mod chat;
mod checked;
mod failing;
#[path = "../it/harness.rs"]
mod harness;
mod layer4;
mod limits;
mod reloading;
mod secured;
mod slow;
mod upgrading;
mod watching;
