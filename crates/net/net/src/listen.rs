//! Listening sockets, and the options of all sockets.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;

use assay_measurement::doubt::Reason;
use rustix::io::Errno;
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::net::{TcpListener, TcpStream};

use crate::limits::{ACCEPT_RETRY, BACKLOG, MAX_UNSENT_BYTES};

/// A listening socket: bound, with a long queue, not yet accepting. Needs a tokio runtime.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    TcpListener::from_std(open(address, false)?.into())
}

/// A listening socket like [`listen`], without a runtime: whoever accepts makes it tokio's own, on its own runtime.
pub fn listen_std(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    Ok(open(address, false)?.into())
}

/// One of several listening sockets at one address (`SO_REUSEPORT`): the system spreads connections over them.
pub fn listen_reuse_port(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    Ok(open(address, true)?.into())
}

/// Accepts the next connection. While a limit is reached, it waits for other connections to end.
pub async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(error) if own_limit(&error).is_none() => {}
            Err(_) => tokio::time::sleep(ACCEPT_RETRY).await,
        }
    }
}

/// Limit of Assay's own that kept it from accepting a connection; none: the client was gone before it was accepted.
pub fn own_limit(error: &io::Error) -> Option<Reason> {
    match Errno::from_io_error(error)? {
        Errno::MFILE | Errno::NFILE => Some(Reason::Descriptors),
        Errno::NOBUFS | Errno::NOMEM => Some(Reason::SocketMemory),
        _ => None,
    }
}

/// Whether a connection to this address leads to `listener`: there are several ways to write an address, and to connect to none in
/// particular (`0.0.0.0`) means this machine.
pub fn leads_to(address: SocketAddr, listener: SocketAddr) -> bool {
    let meant = |ip: IpAddr| match ip.to_canonical() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        other => other,
    };
    if address.port() != listener.port() {
        return false;
    }
    let (to, at) = (meant(address.ip()), listener.ip().to_canonical());
    // Only addresses of this machine can be bound. Who listens at all of them has those of IPv6 in a socket of IPv6 only.
    let is_own = || UdpSocket::bind((to, 0)).is_ok();
    if at.is_unspecified() { (at.is_ipv6() || to.is_ipv4()) && is_own() } else { to == at }
}

/// Advice for a failure to listen.
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
    set_socket_options(&socket)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket)
}

/// Sets the options of a socket that connects, or that listens (connections inherit them, which saves two calls for each).
pub fn set_socket_options(socket: &impl AsFd) -> io::Result<()> {
    let socket = SockRef::from(socket);
    // Without it, the end of a message could wait for the acknowledgement of its beginning.
    socket.set_tcp_nodelay(true)?;
    // A peer that takes nothing would otherwise leave megabytes of what it is sent in the memory that the system has for TCP, which
    // all programs share: a few thousand of them, and nobody on the machine could send any more.
    socket.set_tcp_notsent_lowat(MAX_UNSENT_BYTES)
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Write};
    use std::time::{Duration, Instant};

    use super::*;
    use crate::limits::MAX_UNSENT_BYTES;

    #[test]
    fn a_client_that_is_gone_is_no_limit() {
        let of = |errno: Errno| own_limit(&errno.into());
        assert_eq!(of(Errno::MFILE), Some(Reason::Descriptors));
        assert_eq!(of(Errno::NOMEM), Some(Reason::SocketMemory));
        assert_eq!((of(Errno::CONNABORTED), of(Errno::PROTO)), (None, None));
    }

    #[test]
    fn who_listens_is_reached_by_every_spelling_of_its_address_and_by_no_other() {
        let leads = |address: &str, listener: &str| {
            leads_to(address.parse().expect("an address"), listener.parse().expect("an address"))
        };
        for address in ["127.0.0.1:1", "[::ffff:127.0.0.1]:1", "0.0.0.0:1", "[::ffff:0.0.0.0]:1"] {
            for listener in ["127.0.0.1:1", "[::ffff:127.0.0.1]:1", "0.0.0.0:1", "[::]:1"] {
                assert!(leads(address, listener), "{address} {listener}");
            }
            for listener in ["127.0.0.1:2", "0.0.0.0:2", "127.0.0.2:1", "[::1]:1"] {
                assert!(!leads(address, listener), "{address} {listener}");
            }
        }
        assert!(leads("[::]:1", "[::1]:1") && leads("127.0.0.9:1", "0.0.0.0:1"));
        assert!(leads("[::ffff:127.0.0.9]:1", "[::]:1") && !leads("[::1]:1", "0.0.0.0:1"));
        assert!(!leads("192.0.2.1:1", "0.0.0.0:1") && !leads("[2001:db8::1]:1", "[::]:1"));
    }

    #[test]
    fn a_client_that_takes_nothing_leaves_little_in_the_memory_of_the_system() {
        let listener = listen_std(([127, 0, 0, 1], 0).into()).expect("a port");
        let client = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).expect("a socket");
        client.set_recv_buffer_size(4096).expect("small");
        client.connect(&listener.local_addr().expect("bound").into()).expect("connects");
        listener.set_nonblocking(false).expect("waits");
        let (mut server, _) = listener.accept().expect("a connection");
        server.set_nonblocking(true).expect("does not wait");
        assert_eq!(socket2::SockRef::from(&server).tcp_notsent_lowat().expect("Linux"), MAX_UNSENT_BYTES);
        let (chunk, mut written, mut full_since) = ([0; 16 * 1024], 0, None::<Instant>);
        while full_since.is_none_or(|since| since.elapsed() < Duration::from_millis(100)) {
            match server.write(&chunk) {
                Ok(more) => (written, full_since) = (written + more, None),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    full_since.get_or_insert_with(Instant::now);
                    std::thread::yield_now();
                }
                Err(error) => panic!("{error}"),
            }
        }
        assert!(written <= 128 * 1024 + 2304, "{written} bytes were taken for a client that reads none");
    }
}
