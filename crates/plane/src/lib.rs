//! The data plane: what every process on the path of a request has in common.
//!
//! Robots, origins, the built-in proxy and all else that speaks HTTP here is made of these pieces: bytes between sockets
//! and buffers ([`wire`]; under deadlines that cost nothing to set, [`socket`] and [`watch`]), bodies taken apart ([`body`]),
//! carried over from one connection to another ([`carrier`], [`relay`]) and handed to several readers while they arrive
//! ([`flow`]), fields passed on as intermediaries must ([`fields`]), what they say to a cache ([`caching`]), connections to
//! servers and their reuse ([`upstream`]), listening ([`listen`]); deadlines to within microseconds ([`timer`]), and sockets
//! without tasks ([`sockets`]), on a clock of one kind ([`clock`]); threads pinned and joined ([`worker`]), which let messages
//! come together when there are many ([`gather`]), and words with the parent process ([`stdio`]).
//!
//! *Does not:* decide what is asked, answered, stored or compared; that is what its users are for. No TLS, no HTTP/2.

pub mod body;
pub mod caching;
pub mod carrier;
pub mod clock;
pub mod fields;
pub mod flow;
pub mod gather;
pub mod listen;
pub mod relay;
pub mod socket;
pub mod sockets;
pub mod stdio;
pub mod timer;
pub mod upstream;
pub mod watch;
pub mod wire;
pub mod worker;
