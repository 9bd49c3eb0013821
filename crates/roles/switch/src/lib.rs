//! The web switch: a reverse proxy that looks at the requested URL and sends each request to a server by the policy of its class.
//! All policies of `assay-cluster` can be used, as in simulations.
//!
//! A switch file ([`config`]) defines where clients connect, the classes of requests ([`classes`]), the servers, and limits.
//! [`Switch`] runs it: worker threads that share nothing ([`worker`]) accept connections and forward requests; a control thread
//! ([`control`]) checks the health of servers ([`health`]), gives new ones their weight gradually ([`slow_start`]), serves
//! counters ([`metrics`]), and reloads the file without losing a request. Decisions that need neither sockets nor clocks are
//! separate: [`request`] and [`response`] rewrite heads, [`forwarded`] describes the client, [`orca`] reads load reports of
//! servers, [`tls`] reads certificates and authorities, [`upgrade`] decides which connections may change to another protocol.
//!
//! # Layer 4
//!
//! With `mode = "tcp"`, a connection gets its server as a request does (`worker::slot`), before anything is read from it, and
//! `worker::direction` relays each direction: copied, or moved by the kernel through a pipe of the worker (`pipes`). Bodies of
//! responses are moved in the same way (`splice`).
//!
//! # Workers
//!
//! A worker shares nothing with the others: its requests, idle connections, policies and counters are its own, and so is an even
//! part of every limit. Only the control thread has the state of servers (results of health checks, failures reported by workers,
//! slow start); it sends all workers the weights of the available servers. A configuration is replaced as a whole
//! (`worker::setup`); a request keeps the one with which it began, unless it has to select a server again. A server is identified
//! across a reload by name and address, and a policy by its settings.
//!
//! Nothing is sent twice unless no connection was established, or the request is idempotent, has no body, and no byte of a
//! response has arrived; a request that cannot be repeated gets a new connection. A server reports its load in
//! `endpoint-load-metrics` (ORCA, text form) of any response; the switch does not pass this field to clients.
//!
//! Every connection has one deadline, a number in a cell that is checked every 50 ms: no timer is set for a read or a write. A
//! worker runs its tasks itself (`worker::runtime`, on epoll): a socket is registered only when a task has to wait for it, so
//! that a connection with one request needs no such call, and its response is sent together with the end of the connection if the
//! client has announced that it will send nothing more. Sockets of clients that have been at a head or a handshake for a second
//! are in an epoll set of their own, which is polled once a tick, eight at a time: ten thousand of them that send a byte a second
//! would otherwise wake the worker ten thousand times. Time is read once per turn of a task. Rare data is boxed.
//!
//! *Does not:* store responses, open tunnels to anywhere (CONNECT), look into bodies, or resolve names. Workers do not know of
//! each other: with more than one, each has policies of its own and an even part of every limit.

mod access_log;
mod check;
pub mod classes;
pub mod config;
mod control;
mod forwarded;
pub mod health;
mod lines;
mod messages;
mod metrics;
mod orca;
pub mod reason;
mod request;
mod response;
mod slow_start;
mod switch;
pub mod tally;
pub mod target_hash;
mod tls;
mod upgrade;
mod worker;

pub use config::{Config, explain, read};
pub use switch::{Switch, SwitchError};
