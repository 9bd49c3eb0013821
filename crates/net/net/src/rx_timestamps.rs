//! Receive timestamps of sockets: when the kernel received bytes, and so how long they lay unread.
//!
//! The kernel stamps with the wall clock; everything else is timed with `CLOCK_MONOTONIC`. [`ClockOffset`] converts, with the difference
//! between both clocks, which its owner measures again every few milliseconds: the wall clock is adjusted now and then.
//!
//! *Does not:* stamp the end of a connection (it carries no data), nor any socket without [`enable_rx_timestamps`].

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd};

use assay_measurement::own_error::SOONER_US;
use rustix::net::RecvFlags;

use assay_base::clock::{monotonic_ns, realtime_ns};

/// Receive time of the last byte of a read, in nanoseconds of the wall clock; none: the kernel gave no stamp.
pub type RxTimestamp = Option<u64>;

/// Turns on receive timestamps for a socket; on a listener, for all connections that it accepts.
pub fn enable_rx_timestamps(socket: &impl AsRawFd) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: the descriptor is open, and the option is an int that lives as long as the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMPNS,
            (&raw const on).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Bytes of control messages: one header and one `timespec`.
const CONTROL_BYTES: usize = 32;

/// Room for control messages, aligned as their headers are.
#[repr(align(8))]
struct ControlBuffer([u8; CONTROL_BYTES]);

/// Reads once, without waiting if the socket does not wait: how many bytes, and when the last of them were received.
#[inline]
pub fn recv(socket: &impl AsRawFd, into: &mut [u8]) -> io::Result<(usize, RxTimestamp)> {
    let mut control = ControlBuffer([0; CONTROL_BYTES]);
    let mut part = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    // SAFETY: a message of zeros is an empty one.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = CONTROL_BYTES as _;
    // SAFETY: the descriptor is open, and all that the message points to lives as long as the call.
    let length = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, 0) };
    let length = usize::try_from(length).map_err(|_| io::Error::last_os_error())?;
    Ok((length, received(&message)))
}

/// Reads once, and leaves it at that: how many bytes.
#[inline]
pub fn recv_unstamped(socket: &impl AsFd, into: &mut [u8]) -> io::Result<usize> {
    let (_, length) = rustix::net::recv(socket, into, RecvFlags::empty())?;
    Ok(length)
}

#[inline]
fn received(message: &libc::msghdr) -> RxTimestamp {
    // SAFETY: the kernel has filled the message in: the header, if there is one, lies within the control bytes.
    let header = unsafe { libc::CMSG_FIRSTHDR(message).as_ref() }?;
    let is_time = header.cmsg_level == libc::SOL_SOCKET
        && header.cmsg_type == libc::SCM_TIMESTAMPNS
        && header.cmsg_len as usize >= CONTROL_BYTES;
    if !is_time {
        return None;
    }
    // SAFETY: the header says that a `timespec` follows, and there is room for one; it need not be aligned.
    let time: libc::timespec = unsafe { libc::CMSG_DATA(header).cast::<libc::timespec>().read_unaligned() };
    Some((time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64))
}

fn tcp_info(socket: &impl AsRawFd) -> Option<libc::tcp_info> {
    // SAFETY: numbers, of which zeros are valid.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: the descriptor is open, there is room for so many bytes, and it lives as long as the call.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut info).cast(),
            &raw mut length,
        )
    };
    (result == 0).then_some(info)
}

/// Round-trip time of the TCP handshake in nanoseconds, as the kernel measured it: from the SYN to its response; none: a packet was lost,
/// and the kernel cannot tell.
pub fn handshake_ns(socket: &impl AsRawFd) -> Option<u64> {
    let info = tcp_info(socket)?;
    (info.tcpi_total_retrans == 0).then(|| u64::from(info.tcpi_rtt) * 1_000)
}

/// The other side's kernel has acknowledged all that was written, an end of this side among it. What is closed before that, with something
/// unread, takes the rest back.
pub fn is_delivered(socket: &impl AsRawFd) -> bool {
    // A socket of which nothing can be known has nothing more to deliver.
    tcp_info(socket).is_none_or(|info| info.tcpi_unacked == 0 && info.tcpi_notsent_bytes == 0)
}

/// Upper bound on unread times, in microseconds: a longer one means that the wall clock was set.
const MAX_UNREAD_US: u64 = 60_000_000;

/// Error of an unread time, in microseconds: clocks are compared to within one ([`ClockOffset::measure`]), and drift apart by less than one
/// within the 20 ms until they are compared again.
const STAMP_ERROR_US: u32 = 2;

/// Lower bound, in microseconds, on how long before the read something arrived, given its unread time by the kernel's stamp; at most
/// [`SOONER_US`].
#[inline]
pub fn min_unread_us(unread_us: u32) -> u32 {
    unread_us.saturating_sub(STAMP_ERROR_US).min(SOONER_US)
}

/// Attempts to compare the clocks: one that was interrupted is of no use.
const MAX_COMPARISONS: u32 = 5;
/// A comparison that took no longer, in nanoseconds, was not interrupted.
const UNDISTURBED_NS: u64 = 1_000;

/// The difference between the wall clock and `CLOCK_MONOTONIC`, as last measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockOffset {
    ahead_ns: u64,
}

impl ClockOffset {
    pub fn measure() -> Self {
        let (mut best_ns, mut ahead_ns) = (u64::MAX, 0);
        for _ in 0..MAX_COMPARISONS {
            let (before, wall, after) = (monotonic_ns(), realtime_ns(), monotonic_ns());
            let took_ns = after - before;
            if took_ns < best_ns {
                (best_ns, ahead_ns) = (took_ns, wall.wrapping_sub(before + took_ns / 2));
            }
            if took_ns <= UNDISTURBED_NS {
                break;
            }
        }
        Self { ahead_ns }
    }

    /// Time from `received` to `now_ns`, in microseconds. A wall clock that was set meanwhile would make it absurd, so it is capped at a
    /// minute.
    #[inline]
    pub fn unread_us(self, received: RxTimestamp, now_ns: u64) -> u32 {
        received.map_or(0, |wall_ns| {
            let unread_ns = now_ns.wrapping_sub(wall_ns.wrapping_sub(self.ahead_ns));
            // Received after `now_ns`: the clocks differ by a little more than was measured.
            if unread_ns > i64::MAX as u64 { 0 } else { (unread_ns / 1_000).min(MAX_UNREAD_US) as u32 }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        enable_rx_timestamps(&listener).expect("is an option of every socket");
        let theirs = TcpStream::connect(listener.local_addr().expect("is bound")).expect("is accepted");
        (listener.accept().expect("is there").0, theirs)
    }

    #[test]
    fn the_end_of_a_connection_has_no_time_and_an_error_is_one() {
        let (ours, theirs) = pair();
        ours.set_nonblocking(true).expect("is an option of every socket");
        let mut bytes = [0; 16];
        let nothing = recv(&ours, &mut bytes).expect_err("nothing is there");
        assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
        drop(theirs);
        ours.set_nonblocking(false).expect("is an option of every socket");
        assert_eq!(recv(&ours, &mut bytes).expect("has ended"), (0, None));
    }

    #[test]
    fn what_came_for_certain_before_it_was_read_is_a_little_less_than_it_lay_unread_and_never_much() {
        assert_eq!([0, 1, 2, 3, 40].map(min_unread_us), [0, 0, 0, 1, 38]);
        assert_eq!(
            [102, 103, 300_000, u32::MAX].map(min_unread_us),
            [100; 4],
            "a lost segment may be the reason"
        );
    }

    #[test]
    fn clocks_are_compared_to_within_a_microsecond() {
        // Interrupted ones are not used, so they agree; the wall clock may be set meanwhile, but not each time.
        let differences = || {
            let measured: Vec<u64> = (0..5).map(|_| ClockOffset::measure().ahead_ns).collect();
            measured.windows(2).all(|two| two[0].abs_diff(two[1]) <= 2_000)
        };
        assert!((0..100).any(|_| differences()));
    }

    #[test]
    fn a_wall_clock_that_was_set_makes_nothing_absurd() {
        let arrivals = ClockOffset { ahead_ns: 1_000_000 };
        assert_eq!(arrivals.unread_us(None, 50_000), 0);
        assert_eq!(arrivals.unread_us(Some(1_030_000), 50_000), 20);
        assert_eq!(arrivals.unread_us(Some(1_060_000), 50_000), 0, "received a moment ago");
        assert_eq!(u64::from(arrivals.unread_us(Some(1_030_000), 3_600_000_000_000)), MAX_UNREAD_US);
    }

    #[test]
    fn what_the_other_side_has_no_room_for_is_not_delivered_until_it_is_read() {
        let (mut ours, mut theirs) = pair();
        ours.set_nonblocking(true).expect("is an option");
        while ours.write(&[0; 1 << 16]).is_ok() {}
        ours.shutdown(std::net::Shutdown::Write).expect("is open");
        assert!(!is_delivered(&ours));
        let mut read = [0; 1 << 16];
        while std::io::Read::read(&mut theirs, &mut read).expect("is whole") > 0 {}
        // The acknowledgement of the end is on its way.
        while !is_delivered(&ours) {
            std::thread::yield_now();
        }
    }

    /// The kernel must deliver at once.
    mod real_tests {
        use std::time::Duration;

        use super::*;

        #[test]
        fn what_lay_unread_for_a_known_time_is_told_to_have_lain_that_long() {
            let (ours, mut theirs) = pair();
            let mut bytes = [0; 16];
            // The kernel begins to note times a moment after the first socket of the machine has requested it.
            let mut notes_times = || {
                theirs.write_all(b"x").expect("is written");
                recv(&ours, &mut bytes).expect("something is there").1.is_some()
            };
            assert!((0..1_000_000).any(|_| notes_times()), "this kernel tells when it received something");
            for stall_ms in [0, 20, 60] {
                let sent_ns = monotonic_ns();
                theirs.write_all(b"x").expect("is written");
                let arrived_ns = monotonic_ns();
                // The reader does something else meanwhile.
                std::thread::sleep(Duration::from_millis(stall_ms));
                let before_ns = monotonic_ns();
                let (length, received) = recv(&ours, &mut bytes).expect("something is there");
                let now_ns = monotonic_ns();
                assert_eq!(length, 1);
                let sooner_ns =
                    u64::from(min_unread_us(ClockOffset::measure().unread_us(received, now_ns))) * 1_000;
                assert!(now_ns - sooner_ns >= sent_ns, "{sooner_ns}: it cannot have come before it was sent");
                assert!(received.is_some());
                let unread_ns = u64::from(ClockOffset::measure().unread_us(received, now_ns)) * 1_000;
                // On loopback the kernel receives while the other side sends. Clocks are read a moment apart.
                let slack_ns = 200_000 + (now_ns - before_ns);
                assert!(
                    unread_ns + slack_ns >= before_ns - arrived_ns,
                    "{unread_ns} of {}",
                    before_ns - arrived_ns
                );
                assert!(unread_ns <= now_ns - sent_ns + slack_ns, "{unread_ns} of {}", now_ns - sent_ns);
            }
        }

        #[test]
        fn a_handshake_on_loopback_is_over_in_no_time_however_late_one_looks() {
            let (_ours, theirs) = pair();
            std::thread::sleep(Duration::from_millis(30));
            assert!(handshake_ns(&theirs).is_some_and(|ns| ns < 20_000_000), "{:?}", handshake_ns(&theirs));
        }
    }
}
