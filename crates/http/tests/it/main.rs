//! The corpus of requests that could be read in two ways, against what reads heads and bodies here.

#[path = "../corpus/agree.rs"]
mod agree;
#[path = "../corpus/ending.rs"]
mod ending;
#[path = "../corpus/format.rs"]
mod format;
#[path = "../corpus/strict.rs"]
mod strict;

mod agreement;
mod page;
mod requests;
mod server;
