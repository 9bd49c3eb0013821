//! Measurement of links from inside their namespaces: round trips, rate and congestion control.

use std::io::{self, Read, Write};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use assay_measurement::histogram::Histogram;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::link::namespace::{Namespace, NetError};
use crate::link::realtime;

/// Payload of a packet of the rate test.
const RATE_PAYLOAD: usize = 1400;
/// IP and UDP headers.
const HEADERS: u64 = 28;
/// Offered load, as a multiple of the rate.
const OVERLOAD: f64 = 1.25;

/// Round trips of a number of small packets.
#[derive(Debug, Clone)]
pub struct RoundTrips {
    pub sent: u32,
    /// Round trip times of received responses, in microseconds.
    pub times: Histogram,
}

/// Measures round trips with ICMP echo requests, to which the kernel at the other end responds.
pub fn round_trips(
    from: &Namespace,
    to: Ipv4Addr,
    count: u16,
    every: Duration,
    timeout: Duration,
) -> Result<RoundTrips, NetError> {
    let measured = from.run(|| {
        realtime::request();
        echo(to, count, every, timeout)
    })?;
    NetError::context(format!("measure the round trip to {to}"), measured)
}

fn echo(to: Ipv4Addr, count: u16, every: Duration, timeout: Duration) -> io::Result<RoundTrips> {
    let socket = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::ICMPV4))?;
    socket.connect(&SockAddr::from(SocketAddr::from((to, 0))))?;
    let mut sent: Vec<Instant> = Vec::with_capacity(usize::from(count));
    let mut times = Histogram::new();
    let begin = Instant::now();
    let mut received_count = 0;
    loop {
        let now = Instant::now();
        let (next, last) = (begin + every * sent.len() as u32, begin + every * u32::from(count) + timeout);
        let all_sent = sent.len() == usize::from(count);
        if !all_sent && now >= next {
            sent.push(now);
            socket.send(&echo_request(sent.len() as u16 - 1))?;
            continue;
        }
        if received_count == count || now >= last {
            return Ok(RoundTrips { sent: u32::from(count), times });
        }
        let until = if all_sent { last } else { next };
        socket.set_read_timeout(Some((until - now).max(Duration::from_micros(1))))?;
        let mut buffer = [MaybeUninit::<u8>::uninit(); 128];
        let length = match socket.recv(&mut buffer) {
            Ok(length) => length,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                continue;
            }
            Err(error) => return Err(error),
        };
        let at = Instant::now();
        // SAFETY: the kernel has written that many bytes.
        let packet = buffer[..length].iter().map(|byte| unsafe { byte.assume_init() }).collect::<Vec<u8>>();
        if let Some(sent) = echo_response(&packet).and_then(|number| sent.get(usize::from(number))) {
            times.record(u64::try_from((at - *sent).as_micros()).unwrap_or(u64::MAX));
            received_count += 1;
        }
    }
}

/// An echo request: type 8, code 0, checksum, identifier, number.
fn echo_request(number: u16) -> [u8; 8] {
    let [high, low] = number.to_be_bytes();
    let mut bytes = [8, 0, 0, 0, 0xA5, 0x5A, high, low];
    let sum: u32 = bytes.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    let folded = (sum & 0xFFFF) + (sum >> 16);
    // Folding once more leaves sixteen bits.
    let checksum = !((folded & 0xFFFF) as u16 + (folded >> 16) as u16);
    bytes[2..4].copy_from_slice(&checksum.to_be_bytes());
    bytes
}

/// The number of an echo response to one of ours, IP header first.
fn echo_response(packet: &[u8]) -> Option<u16> {
    let header = usize::from(packet.first()? & 0x0F) * 4;
    match packet.get(header..header + 8)? {
        [0, 0, _, _, 0xA5, 0x5A, high, low] => Some(u16::from_be_bytes([*high, *low])),
        _ => None,
    }
}

/// An address in a namespace.
#[derive(Debug, Clone, Copy)]
pub struct Endpoint<'a> {
    pub namespace: &'a Namespace,
    pub address: Ipv4Addr,
}

/// Throughput under an overload, in bits per second of IP packets; none if too few packets arrived.
pub fn rate(
    from: &Namespace,
    to: Endpoint<'_>,
    bits_per_s: u64,
    lasting: Duration,
) -> Result<Option<f64>, NetError> {
    // The time of a few packets on a slow link.
    let silence = Duration::from_secs(1) + Duration::from_secs_f64(50_000.0 / bits_per_s.max(1) as f64);
    let action = || format!("measure the rate to {}", to.address);
    let receiver = NetError::context(action(), to.namespace.run(|| listen(to.address))?)?;
    let address = NetError::context(action(), receiver.local_addr())?;
    std::thread::scope(|scope| {
        let sender = scope.spawn(|| from.run(|| offer(address, bits_per_s, lasting)));
        let received = NetError::context(action(), receive(&receiver, silence));
        let sent = sender.join().unwrap_or_else(|_| Ok(Err(io::Error::other("the sender panicked"))))?;
        NetError::context(action(), sent)?;
        received
    })
}

fn listen(address: Ipv4Addr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None)?;
    // A receiver that is late must not lose what the link delivered.
    socket.set_recv_buffer_size(4 << 20)?;
    socket.bind(&SockAddr::from(SocketAddr::from((address, 0))))?;
    Ok(socket.into())
}

fn offer(to: SocketAddr, bits_per_s: u64, lasting: Duration) -> io::Result<()> {
    let socket = UdpSocket::bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)))?;
    socket.connect(to)?;
    let payload = [0x5A; RATE_PAYLOAD];
    let (begin, mut sent_bits) = (Instant::now(), 0.0);
    loop {
        let since = begin.elapsed();
        if since >= lasting {
            return Ok(());
        }
        let due_bits = since.as_secs_f64() * bits_per_s as f64 * OVERLOAD;
        while sent_bits <= due_bits {
            match socket.send(&payload) {
                Ok(_) | Err(_) => sent_bits += ((RATE_PAYLOAD as u64 + HEADERS) * 8) as f64,
            }
        }
        std::thread::sleep(Duration::from_micros(500));
    }
}

/// Receives until no packet comes for `silence`; bits per second between the first packet and the last.
fn receive(socket: &UdpSocket, silence: Duration) -> io::Result<Option<f64>> {
    let mut buffer = [0; RATE_PAYLOAD + 1];
    let (mut first, mut last, mut bytes) = (None, Instant::now(), 0_u64);
    // The first packet may take as long as the longest delay; later ones follow it closely.
    socket.set_read_timeout(Some(Duration::from_secs(65)))?;
    loop {
        match socket.recv(&mut buffer) {
            Ok(length) => {
                last = Instant::now();
                match first {
                    None => {
                        first = Some(last);
                        socket.set_read_timeout(Some(silence))?;
                    }
                    Some(_) => bytes += length as u64 + HEADERS,
                }
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                break;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let took_s = first.map_or(0.0, |first| (last - first).as_secs_f64());
    Ok((took_s > 0.0).then(|| bytes as f64 * 8.0 / took_s))
}

/// Congestion control of a connection between two namespaces, at both ends.
pub fn congestion_control(
    from: &Namespace,
    to: Endpoint<'_>,
    timeout: Duration,
) -> Result<[String; 2], NetError> {
    let action = || format!("connect to {} to see its congestion control", to.address);
    let listener = NetError::context(action(), to.namespace.run(|| TcpListener::bind((to.address, 0)))?)?;
    let address = NetError::context(action(), listener.local_addr())?;
    let accepted = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept()?;
        let name = name_of(&stream)?;
        stream.write_all(b".").map(|()| name)
    });
    let connected = from.run(|| {
        let mut stream = TcpStream::connect_timeout(&address, timeout)?;
        stream.set_read_timeout(Some(timeout))?;
        stream.read_exact(&mut [0])?;
        name_of(&stream)
    })?;
    let connected = NetError::context(action(), connected)?;
    let accepted = accepted.join().unwrap_or_else(|_| Err(io::Error::other("the listener panicked")));
    Ok([connected, NetError::context(action(), accepted)?])
}

fn name_of(stream: &TcpStream) -> io::Result<String> {
    let name = socket2::SockRef::from(stream).tcp_congestion()?;
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    Ok(String::from_utf8_lossy(&name[..end]).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_sum_up_to_nothing_and_responses_are_known() {
        for number in [0, 1, 255, 256, 65_535] {
            let bytes = echo_request(number);
            let sum: u32 =
                bytes.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
            assert_eq!((sum & 0xFFFF) + (sum >> 16), 0xFFFF);
            let mut packet = vec![0x45; 20];
            packet.extend(bytes);
            assert_eq!(echo_response(&packet), None);
            packet[20] = 0;
            assert_eq!(echo_response(&packet), Some(number));
        }
        assert_eq!(echo_response(&[]), None);
        assert_eq!(echo_response(&[0x4F; 30]), None);
    }
}
