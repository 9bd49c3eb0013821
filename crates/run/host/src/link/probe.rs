//! What a link really does, measured. Round trips, rate and congestion control, measured from inside its namespaces.

use std::io::{self, Read, Write};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use assay_measurement::histogram::Histogram;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::link::namespace::{Namespace, NetError};
use crate::link::realtime;

/// Bytes of a packet of the rate test, and of those that are its headers.
const RATE_PAYLOAD: usize = 1400;
const HEADERS: u64 = 28;
/// How much more than the rate is offered to find it.
const OFFERED: f64 = 1.25;

/// What came back of a number of small packets.
#[derive(Debug, Clone)]
pub struct RoundTrips {
    /// How many were sent.
    pub sent: u32,
    /// How long those took that came back, in microseconds.
    pub times: Histogram,
}

/// Sends small packets (ICMP echo requests, which the other end's kernel responds to by itself) and times their responses.
pub fn round_trips(
    from: &Namespace,
    to: Ipv4Addr,
    count: u16,
    every: Duration,
    patience: Duration,
) -> Result<RoundTrips, NetError> {
    let measured = from.run(|| {
        realtime::request();
        echo(to, count, every, patience)
    })?;
    NetError::because(format!("measure the round trip to {to}"), measured)
}

fn echo(to: Ipv4Addr, count: u16, every: Duration, patience: Duration) -> io::Result<RoundTrips> {
    let socket = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::ICMPV4))?;
    socket.connect(&SockAddr::from(SocketAddr::from((to, 0))))?;
    let mut sent: Vec<Instant> = Vec::with_capacity(usize::from(count));
    let mut times = Histogram::new();
    let begin = Instant::now();
    let mut responded = 0;
    loop {
        let now = Instant::now();
        let (next, last) = (begin + every * sent.len() as u32, begin + every * u32::from(count) + patience);
        let all_sent = sent.len() == usize::from(count);
        if !all_sent && now >= next {
            sent.push(now);
            socket.send(&request(sent.len() as u16 - 1))?;
            continue;
        }
        if responded == count || now >= last {
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
        if let Some(sent) = response(&packet).and_then(|number| sent.get(usize::from(number))) {
            times.record(u64::try_from((at - *sent).as_micros()).unwrap_or(u64::MAX));
            responded += 1;
        }
    }
}

/// An echo request: type 8, code 0, checksum, identifier, number.
fn request(number: u16) -> [u8; 8] {
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
fn response(packet: &[u8]) -> Option<u16> {
    let header = usize::from(packet.first()? & 0x0F) * 4;
    match packet.get(header..header + 8)? {
        [0, 0, _, _, 0xA5, 0x5A, high, low] => Some(u16::from_be_bytes([*high, *low])),
        _ => None,
    }
}

/// What comes through of more than the rate, in bits per second of IP packets. `None`: too little came to tell.
pub fn rate(
    from: &Namespace,
    to: (&Namespace, Ipv4Addr),
    bits_per_s: u64,
    lasting: Duration,
) -> Result<Option<f64>, NetError> {
    // As long as a few packets take on a slow link.
    let silence = Duration::from_secs(1) + Duration::from_secs_f64(50_000.0 / bits_per_s.max(1) as f64);
    let attempted = || format!("measure the rate to {}", to.1);
    let receiver = NetError::because(attempted(), to.0.run(|| listen(to.1))?)?;
    let address = NetError::because(attempted(), receiver.local_addr())?;
    std::thread::scope(|scope| {
        let sender = scope.spawn(|| from.run(|| offer(address, bits_per_s, lasting)));
        let received = NetError::because(attempted(), receive(&receiver, silence));
        let sent = sender.join().unwrap_or_else(|_| Ok(Err(io::Error::other("the sender panicked"))))?;
        NetError::because(attempted(), sent)?;
        received
    })
}

fn listen(address: Ipv4Addr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None)?;
    // As much as the kernel gives: a receiver that is late must not lose what the link delivered.
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
        let due_bits = since.as_secs_f64() * bits_per_s as f64 * OFFERED;
        while sent_bits <= due_bits {
            match socket.send(&payload) {
                Ok(_) | Err(_) => sent_bits += ((RATE_PAYLOAD as u64 + HEADERS) * 8) as f64,
            }
        }
        std::thread::sleep(Duration::from_micros(500));
    }
}

/// Bits a second between the first packet and the last.
fn receive(socket: &UdpSocket, silence: Duration) -> io::Result<Option<f64>> {
    let mut buffer = [0; RATE_PAYLOAD + 1];
    let (mut first, mut last, mut bytes) = (None, Instant::now(), 0_u64);
    // The first may be under way for long; those behind it come one after the other, or not at all.
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

/// By which congestion control a connection from one namespace to another is carried, at both ends.
pub fn congestion_control(
    from: &Namespace,
    to: (&Namespace, Ipv4Addr),
    patience: Duration,
) -> Result<[String; 2], NetError> {
    let attempted = || format!("connect to {} to see its congestion control", to.1);
    let listener = NetError::because(attempted(), to.0.run(|| TcpListener::bind((to.1, 0)))?)?;
    let address = NetError::because(attempted(), listener.local_addr())?;
    let accepted = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept()?;
        let name = name_of(&stream)?;
        stream.write_all(b".").map(|()| name)
    });
    let connected = from.run(|| {
        let mut stream = TcpStream::connect_timeout(&address, patience)?;
        stream.set_read_timeout(Some(patience))?;
        stream.read_exact(&mut [0])?;
        name_of(&stream)
    })?;
    let connected = NetError::because(attempted(), connected)?;
    let accepted = accepted.join().unwrap_or_else(|_| Err(io::Error::other("the listener panicked")));
    Ok([connected, NetError::because(attempted(), accepted)?])
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
            let bytes = request(number);
            let sum: u32 =
                bytes.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
            assert_eq!((sum & 0xFFFF) + (sum >> 16), 0xFFFF);
            let mut packet = vec![0x45; 20];
            packet.extend(bytes);
            assert_eq!(response(&packet), None);
            packet[20] = 0;
            assert_eq!(response(&packet), Some(number));
        }
        assert_eq!(response(&[]), None);
        assert_eq!(response(&[0x4F; 30]), None);
    }
}
