//! The data plane: what every process on the path of a request has in common.
//!
//! Robots, origins, the built-in proxy and all else that speaks HTTP here is made of these pieces: bytes between sockets
//! and buffers ([`wire`]), bodies taken apart ([`body`]) and handed to several readers while they arrive ([`flow`]),
//! fields passed on as intermediaries must ([`fields`]), connections to servers and their reuse ([`upstream`]), listening
//! ([`listen`]); deadlines to within microseconds ([`timer`]) on a clock of one kind ([`clock`]); threads pinned and joined
//! ([`worker`]), and words with the parent process ([`stdio`]).
//!
//! *Does not:* decide what is asked, answered, stored or compared; that is what its users are for. No TLS, no HTTP/2.

pub mod body;
pub mod clock;
pub mod fields;
pub mod flow;
pub mod listen;
pub mod stdio;
pub mod timer;
pub mod upstream;
pub mod wire;
pub mod worker;
