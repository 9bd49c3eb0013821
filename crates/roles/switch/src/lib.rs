//! The web switch: a reverse proxy that looks at the requested URL, and sends each request to a server by the policy of its
//! class. All policies of `assay-cluster` serve it, as they serve the simulation.
//!
//! A switch file ([`config`]) says where clients connect, which classes of requests there are ([`classes`]), which servers,
//! and what they may have. [`Switch`] runs it: worker threads that share nothing ([`worker`]) accept connections and pass
//! requests on; one thread steers them ([`control`]): it checks the health of servers ([`health`]), brings new ones up
//! slowly ([`slow_start`]), shows counters ([`metrics`]) and takes on another file without losing a request. What is decided
//! without sockets and clocks stands apart: [`request`] and [`response`] rewrite heads, [`forwarded`] names the client, [`load`]
//! reads what servers say of themselves, [`secure`] reads certificates and authorities, [`upgrade`] says which connections may change to another protocol.
//!
//! With `mode = "tcp"` a connection gets its server before anything of it is read, and its bytes go both ways as they are, copied or
//! moved by the kernel.
//!
//! *Does not:* store responses, speak HTTP/2 to servers, open tunnels to anywhere (CONNECT), look into bodies, or resolve names.
//! Workers do not know of each other: with more than one, each has policies of its own and an even part of every limit.

mod access_log;
mod check;
pub mod classes;
pub mod config;
mod control;
pub mod document;
mod forwarded;
pub mod health;
mod lines;
mod load;
mod metrics;
mod plan;
pub mod reason;
mod request;
mod response;
mod secure;
mod slow_start;
mod switch;
pub mod tally;
mod upgrade;
mod worker;

pub use config::{Config, explain, read};
pub use switch::{Switch, SwitchError};
