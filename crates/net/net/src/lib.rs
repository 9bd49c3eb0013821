//! The data plane: what every process on the path of a request has in common.
//!
//! Robots, origins, the built-in proxy and all else that speaks HTTP here is made of these pieces: connections ([`connection`])
//! with shared buffers ([`memory`]) and deadlines that cost nothing to set ([`watch`]), requests and responses on them
//! ([`exchange`]), requests of HTTP/2 as connections of that kind ([`http2`], [`http_stream`]), bodies taken apart ([`body`]),
//! carried over from one connection to another ([`carrier`], [`relay`]) and handed to several readers while they arrive
//! ([`flow`]), fields ([`fields`]) and interim responses ([`interim`]) passed on as intermediaries must, connections to
//! servers ([`upstream`]) and their reuse ([`pool`]), listening ([`listen`]), places for a bounded number of clients ([`places`]) and hosts that they may name ([`own_host`]), one table of bounds ([`limits`]); deadlines to within
//! microseconds ([`timer`]), and sockets without tasks ([`sockets`]), on a clock of one kind ([`clock`]), and when what is read was received ([`arrival`]); threads pinned and
//! joined ([`worker`]), how long they ran and waited ([`thread_times`]), which let messages come together when there are many ([`gather`]).
//!
//! *Does not:* decide what is requested, sent, stored or compared; that is left to its users.

pub mod arrival;
pub mod body;
pub mod byte_stream;
pub mod carrier;
pub mod clock;
pub mod connection;
pub mod exchange;
pub mod fields;
pub mod flow;
pub mod gather;
pub mod http2;
pub mod http_stream;
pub mod interim;
pub mod limits;
pub mod listen;
pub mod memory;
pub mod own_host;
pub mod places;
pub mod pool;
pub mod refused;
pub mod relay;
pub mod sockets;
pub mod thread_times;
pub mod timer;
pub mod tls;
pub mod tune;
pub mod upstream;
pub mod watch;
pub mod worker;

/// Robots' origins, simulated origins, nodes and the Collector respond to a GET of this path with 200 and count it nowhere: the
/// program that starts them, or a proxy before them, uses it to find out whether requests come through.
pub const HEALTH_PATH: &str = "/assay/health";

/// How the line of a response to a health check begins that names the origin of a run that responds.
pub const HEALTH_ORIGIN: &str = "origin ";
