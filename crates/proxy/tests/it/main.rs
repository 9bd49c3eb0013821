//! The proxy between a scripted origin and raw clients, in one process and on a clock that stands still.

mod caching;
mod collapse;
mod cooperation;
mod failing;
mod forward;
mod harness;
mod memory;
mod passing;
mod protocol;
mod ranges;
mod role;
mod storm;
mod validation;
