//! The corpus of requests that could be read in two ways, against what reads heads and bodies here.

#[path = "../corpus/agree.rs"]
mod agree;
#[path = "../corpus/change.rs"]
mod change;
#[path = "../corpus/ending.rs"]
mod ending;
#[path = "../corpus/format.rs"]
mod format;
#[path = "../corpus/reader.rs"]
mod reader;
#[path = "../corpus/response_change.rs"]
mod response_change;
#[path = "../corpus/response_reader.rs"]
mod response_reader;
#[path = "../corpus/strict.rs"]
mod strict;

mod agreement;
mod page;
mod requests;
