//! The corpus of requests that could be read in two ways, against what reads heads and bodies here.

mod agreement;
mod page;
mod requests;
