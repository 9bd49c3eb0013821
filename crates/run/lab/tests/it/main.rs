//! The lab when it is killed, its reference, and what its tests with real proxies rest on.

mod examples;
mod killed;
mod malformed;
mod reference;
mod translated;
