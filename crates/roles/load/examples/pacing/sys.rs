//! The few things of the system that the programs share: epoll, a timer descriptor, rows of a file.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::Path;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

use assay_net::clock::SECOND_NS;

/// Which request, and when.
pub type Row = (u64, u64);

/// A level-triggered epoll set; tokens are the caller's.
pub struct Epoll {
    descriptor: OwnedFd,
    events: Vec<libc::epoll_event>,
}

impl Epoll {
    pub fn new() -> io::Result<Self> {
        // SAFETY: takes no pointer.
        let raw = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if raw < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a new descriptor that nobody else owns.
        let descriptor = unsafe { OwnedFd::from_raw_fd(raw) };
        Ok(Self { descriptor, events: vec![libc::epoll_event { events: 0, u64: 0 }; 1024] })
    }

    /// Tells when `descriptor` can be read.
    pub fn add(&self, descriptor: RawFd, token: u64) -> io::Result<()> {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: token };
        // SAFETY: the event lives as long as the call.
        let done = unsafe {
            libc::epoll_ctl(self.descriptor.as_raw_fd(), libc::EPOLL_CTL_ADD, descriptor, &mut event)
        };
        if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Waits, -1 for ever, and gives the tokens of what is ready.
    pub fn wait(&mut self, timeout_ms: i32) -> io::Result<Vec<u64>> {
        let room = self.events.len() as i32;
        // SAFETY: there is room for so many events, and the vector lives as long as the call.
        let ready = unsafe {
            libc::epoll_wait(self.descriptor.as_raw_fd(), self.events.as_mut_ptr(), room, timeout_ms)
        };
        if ready < 0 {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::Interrupted { Ok(Vec::new()) } else { Err(error) };
        }
        Ok(self.events[..ready as usize].iter().map(|event| event.u64).collect())
    }
}

/// A timer descriptor that is set to absolute deadlines.
pub struct Alarm(OwnedFd);

impl Alarm {
    pub fn new() -> io::Result<Self> {
        Ok(Self(timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?))
    }

    /// Readable from `at_ns` on, until it is set anew.
    pub fn set(&self, at_ns: u64) -> io::Result<()> {
        let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
        let value = Timespec { tv_sec: (at_ns / SECOND_NS) as i64, tv_nsec: (at_ns % SECOND_NS) as _ };
        let setting = Itimerspec { it_interval: zero, it_value: value };
        timerfd_settime(self.0.as_fd(), TimerfdTimerFlags::ABSTIME, &setting)?;
        Ok(())
    }

    /// Sleeps until it has expired.
    pub fn sleep(&self) -> io::Result<()> {
        let mut count = [0; 8];
        rustix::io::read(&self.0, &mut count)?;
        Ok(())
    }

    pub fn descriptor(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// A connection that never waits.
pub fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_nonblocking(true)?;
    Ok(stream)
}

/// The one request that the programs send.
pub fn request(id: u64) -> Vec<u8> {
    format!("GET /i/{id} HTTP/1.1\r\nHost: origin.example\r\n\r\n").into_bytes()
}

pub fn read_rows(path: impl AsRef<Path>) -> io::Result<Vec<Row>> {
    let bytes = fs::read(path)?;
    let (rows, _) = bytes.as_chunks::<16>();
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    Ok(rows.iter().map(|row| (number(&row[..8]), number(&row[8..]))).collect())
}

pub fn write_rows(path: impl AsRef<Path>, rows: &[Row]) -> io::Result<()> {
    let bytes: Vec<u8> =
        rows.iter().flat_map(|(id, ns)| [id.to_le_bytes(), ns.to_le_bytes()]).flatten().collect();
    fs::write(path, bytes)
}
