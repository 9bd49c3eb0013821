//! A corpus of requests and responses as they should not be (`requests.txt`, `replies.txt`), with changes at random, readers that
//! judge strictly, and the peers that try both on an intermediary over sockets. One corpus for all: what one of ours refuses, every
//! one does.

pub mod agree;
pub mod answered;
pub mod change;
pub mod client;
pub mod derived;
pub mod ending;
pub mod format;
pub mod judge;
pub mod reader;
pub mod recorder;
pub mod response_change;
pub mod response_reader;
pub mod responses;
pub mod seen;
pub mod strict;
