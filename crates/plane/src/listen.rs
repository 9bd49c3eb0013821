//! Listening sockets.

use std::io;
use std::net::SocketAddr;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpListener, TcpStream};

use crate::limits::{BACKLOG, OUT_OF_DESCRIPTORS};

/// A listening socket: bound, with a long queue, not yet accepting. Needs a tokio runtime.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    TcpListener::from_std(open(address, false)?.into())
}

/// The same without a runtime: whoever accepts makes it tokio's own, on its own runtime.
pub fn listen_alone(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    Ok(open(address, false)?.into())
}

/// One of several listening sockets at one address: the system spreads connections over them.
pub fn listen_beside_others(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    Ok(open(address, true)?.into())
}

/// The next connection. An error means that it is gone already, or that no descriptor is left for it: others end, and then there
/// are some again.
pub async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(_) => tokio::time::sleep(OUT_OF_DESCRIPTORS).await,
        }
    }
}

/// What to do when it was not possible to listen somewhere.
pub fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => "something listens there already: stop it, or name another address",
        io::ErrorKind::AddrNotAvailable => "this machine does not have that address",
        io::ErrorKind::PermissionDenied => "ports below 1024 need root: name a higher one",
        _ => "name another address",
    }
}

fn open(address: SocketAddr, beside_others: bool) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    if beside_others {
        socket.set_reuse_port(true)?;
    }
    socket.set_nonblocking(true)?;
    // Connections have it from the socket that accepts them, which saves a call for each. Without it, the end of a
    // message could wait for the acknowledgement of its beginning.
    socket.set_tcp_nodelay(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket)
}
