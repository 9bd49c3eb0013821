//! The lab against real programs: the proxies that are described, and roles that misbehave.

mod behaviour;
mod origin;
mod proxies;
