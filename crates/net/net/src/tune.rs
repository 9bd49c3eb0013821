//! What every socket of a connection is set to.

use std::io;
use std::os::fd::AsFd;

use socket2::SockRef;

use crate::limits::MOST_UNSENT;

/// Sets up a socket: one that connects, or one that listens (connections have it from the socket that accepts them, which saves two
/// calls for each).
pub fn tune(socket: &impl AsFd) -> io::Result<()> {
    let socket = SockRef::from(socket);
    // Without it, the end of a message could wait for the acknowledgement of its beginning.
    socket.set_tcp_nodelay(true)?;
    // A peer that takes nothing would otherwise leave megabytes of what it is sent in the memory that the system has for TCP, which
    // all programs share: a few thousand of them, and nobody on the machine could send any more.
    socket.set_tcp_notsent_lowat(MOST_UNSENT)
}
