//! The listeners of origins.

use std::io;
use std::net::{SocketAddr, TcpListener};

use assay_net::rx_timestamps::enable_rx_timestamps;
use socket2::{Domain, Protocol, Socket, Type};
use thiserror::Error;

/// Connections that may wait to be accepted: as many as the system allows (`net.core.somaxconn`), which cuts it down.
const BACKLOG: i32 = i32::MAX;

/// An address that cannot be listened on. The cause is part of the message, and so no `source` of the error.
#[derive(Debug, Error)]
#[error(
    "origin {origin} cannot listen on {address}: {cause}; is the address one of this machine, and the port free?"
)]
pub struct ListenError {
    /// Index of the origin in the workload.
    pub origin: usize,
    pub address: SocketAddr,
    pub cause: io::Error,
}

/// Listening sockets of one origin, one for each of `threads` workers: the system spreads connections over them.
pub fn listen(origin: usize, address: SocketAddr, threads: usize) -> Result<Vec<TcpListener>, ListenError> {
    bind_all(address, threads.max(1)).map_err(|cause| ListenError { origin, address, cause })
}

fn bind_all(address: SocketAddr, threads: usize) -> io::Result<Vec<TcpListener>> {
    if threads == 1 {
        return Ok(vec![bind(address, false)?]);
    }
    // Sockets that share a port also share it with those of other processes, so whether the port is free is found out with
    // a socket that does not share. Port 0 is never given to two.
    if address.port() != 0 {
        drop(bind(address, false)?);
    }
    let first = bind(address, true)?;
    let address = first.local_addr()?;
    let mut listeners = vec![first];
    for _ in 1..threads {
        listeners.push(bind(address, true)?);
    }
    Ok(listeners)
}

fn bind(address: SocketAddr, shared: bool) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // Connections of an earlier run that linger in TIME_WAIT do not count as users of the port.
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(shared)?;
    // Accepted connections inherit this.
    socket.set_tcp_nodelay(true)?;
    // And this. A kernel that cannot leaves the origin's own delays unknown, which is no reason not to serve.
    let _ = enable_rx_timestamps(&socket);
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loopback(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    #[test]
    fn all_workers_of_an_origin_share_one_port() {
        let listeners = listen(0, loopback(0), 3).expect("a free port");
        let ports: Vec<_> = listeners.iter().map(|l| l.local_addr().expect("is bound").port()).collect();
        assert_eq!(ports.len(), 3);
        assert!(ports.iter().all(|port| *port == ports[0] && *port != 0));
    }

    #[test]
    fn a_port_that_is_in_use_is_refused_and_named() {
        for (theirs, ours) in [(1, 1), (1, 2), (2, 1), (2, 2)] {
            let taken = listen(0, loopback(0), theirs).expect("a free port");
            let address = taken[0].local_addr().expect("is bound");
            let error = listen(4, address, ours).expect_err("in use");
            assert_eq!(error.cause.kind(), io::ErrorKind::AddrInUse, "{theirs} {ours}");
            assert!(error.to_string().contains(&format!("origin 4 cannot listen on {address}")), "{error}");
            assert!(std::error::Error::source(&error).is_none(), "or it would be said twice");
        }
    }
}
