//! The proxy between a scripted origin and raw clients, in one process and on a clock that stands still. What
//! is here has the same result however busy the machine is.

mod caching;
mod collapse;
mod cooperation;
mod corpus;
mod failing;
mod forward;
mod harness;
mod leaving;
mod memory;
mod multiplexed;
mod passing;
mod policies;
mod prefetch;
mod protocol;
mod ranges;
mod role;
mod settings;
mod through;
mod validation;
