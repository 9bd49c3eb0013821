//! Simultaneous proxy evaluation: many proxies, the same clients, one trip to the origin.
//!
//! After B. D. Davison and C. Krishnan, *ROPE: The Rutgers Online Proxy Evaluator*, and chapters 10 and 11 of Davison's
//! thesis: the *Multiplier* takes requests of real clients, serves them from the Collector, and sends each of them to every
//! proxy under test too; the *Collector* stands where the origins would be. It fetches each thing once and serves
//! later requests for it as if it were fetched again: at the pace at which it came. So proxies can be compared on
//! live traffic, one that prefetches among them, and origins see one request for each need.
//!
//! Both are roles: processes of the one binary, told what to do by [`spec`].
//!
//! What a client sends after CONNECT goes through unseen, unless the user has named an authority of their own with which tunnels are opened.
//!
//! *Does not:* start proxies (that is `assay-lab`), draw reports (`assay-report`), or trust that authority.

pub mod collector;
mod drain;
mod memory;
pub mod multiplier;
pub mod number;
mod reasons;
pub mod spec;
mod trouble;
pub mod validate;
