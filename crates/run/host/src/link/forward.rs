//! Packets on their way from one end of a link to the other.
//!
//! One thread carries a link's both directions between two TUN devices: it reads what was sent, lets the [`model`](crate::link::model)
//! decide what becomes of it, and writes it at its time. It sleeps in one `ppoll` with one `timerfd` set to the next departure,
//! and counts everything, how late it wrote included: that is the link's own fault, never a result.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use assay_base::clock::monotonic_ns;
use assay_measurement::histogram::{Histogram, SparseHistogram};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

use crate::link::model::{Fate, Model};
use crate::link::realtime;
use crate::link::settings::LinkSettings;

/// Room for a packet: the MTU, rounded up.
const PACKET_BYTES: usize = 2048;
/// Packets that are read before it is looked whether one is due.
const BATCH: usize = 16;
/// Packets that may be under way at once, both directions together: 256 MiB.
const MOST_HELD: usize = 128 * 1024;
/// How long the thread may take to respond.
const PATIENCE: Duration = Duration::from_secs(5);

/// What one direction has carried since the link was made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets that came to the link.
    pub packets: u64,
    /// Their bytes, IP headers included.
    pub bytes: u64,
    /// Packets that came out.
    pub delivered: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// Packets that the plan lost.
    pub lost: u64,
    /// Packets that found the queue full.
    pub queue_full: u64,
    /// Packets that were on the wire: what the plan counts. All but those that found the queue full.
    pub wire: u64,
    /// Packets that the link itself could not carry: no memory left, or the device took none. Its own fault.
    pub failed: u64,
    /// How late packets came out, since the last call.
    pub lateness: SparseHistogram,
}

/// A link that carries packets, until it is dropped.
#[derive(Debug)]
pub struct Forwarder {
    wake: Arc<OwnedFd>,
    requested: Arc<Mutex<Requested>>,
    responses: Receiver<[Counts; 2]>,
    thread: Option<JoinHandle<io::Result<()>>>,
    /// Whether its thread goes before all others.
    pub realtime: bool,
}

/// Commands to the thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Requested {
    #[default]
    Nothing,
    Counts,
    End,
}

impl Forwarder {
    /// Begins to carry packets between two TUN devices: direction 0 is from the first to the second.
    pub fn start(ends: [OwnedFd; 2], settings: &LinkSettings, seed: u64) -> io::Result<Self> {
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let timer =
            timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        let requested = Arc::new(Mutex::new(Requested::default()));
        let (response, responses) = sync_channel(1);
        let (tell_realtime, hear_realtime) = sync_channel(1);
        let mut worker = Worker {
            directions: [0, 1].map(|direction| Direction::new(settings, seed, direction)),
            ends,
            timer,
            armed_ns: None,
            pool: Vec::new(),
            wake: wake.clone(),
            requested: requested.clone(),
            response,
        };
        let thread = std::thread::Builder::new().name("link".into()).spawn(move || {
            // Its starter waits for this message.
            let _ = tell_realtime.send(realtime::request());
            worker.run()
        })?;
        let realtime = hear_realtime.recv().unwrap_or(false);
        Ok(Self { wake, requested, responses, thread: Some(thread), realtime })
    }

    /// What was carried so far, by direction.
    pub fn counts(&mut self) -> io::Result<[Counts; 2]> {
        self.request(Requested::Counts);
        self.responses.recv_timeout(PATIENCE).map_err(|_| match self.end() {
            Err(error) => error,
            Ok(()) => io::Error::new(io::ErrorKind::TimedOut, "the link does not respond"),
        })
    }

    pub fn end(&mut self) -> io::Result<()> {
        let Some(thread) = self.thread.take() else { return Ok(()) };
        self.request(Requested::End);
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the link's thread panicked")))
    }

    fn request(&self, what: Requested) {
        *self.requested.lock().unwrap_or_else(PoisonError::into_inner) = what;
        // It cannot be full: nobody counts to 2⁶⁴.
        let _ = rustix::io::write(&*self.wake, &1_u64.to_ne_bytes());
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        // Nobody is left to hear of it.
        let _ = self.end();
    }
}

struct Packet {
    at_ns: u64,
    length: usize,
    bytes: Box<[u8]>,
}

struct Direction {
    model: Model,
    held: VecDeque<Packet>,
    counts: Counts,
    lateness: Histogram,
}

impl Direction {
    fn new(settings: &LinkSettings, seed: u64, direction: u8) -> Self {
        Self {
            model: Model::new(settings, seed, direction),
            held: VecDeque::new(),
            counts: Counts::default(),
            lateness: Histogram::new(),
        }
    }
}

struct Worker {
    ends: [OwnedFd; 2],
    directions: [Direction; 2],
    timer: OwnedFd,
    armed_ns: Option<u64>,
    pool: Vec<Box<[u8]>>,
    wake: Arc<OwnedFd>,
    requested: Arc<Mutex<Requested>>,
    response: SyncSender<[Counts; 2]>,
}

impl Worker {
    fn run(&mut self) -> io::Result<()> {
        let mut ready = [true; 3];
        loop {
            for (direction, more) in ready.iter_mut().take(2).enumerate() {
                // Where a whole batch was read, more may be there.
                *more = *more && self.read(direction)?;
                self.write_due(0);
                self.write_due(1);
            }
            if ready[2] && self.response()? == Requested::End {
                return Ok(());
            }
            if !(ready[0] || ready[1]) || ready[2] {
                ready = self.wait(ready[0] || ready[1])?;
            }
        }
    }

    /// Takes in what was sent at one end; true: there may be more.
    fn read(&mut self, direction: usize) -> io::Result<bool> {
        for _ in 0..BATCH {
            let mut bytes = self.pool.pop().unwrap_or_else(|| vec![0; PACKET_BYTES].into_boxed_slice());
            let length = match rustix::io::read(&self.ends[direction], &mut bytes[..]) {
                Ok(length) => length,
                Err(Errno::AGAIN | Errno::INTR) => {
                    self.pool.push(bytes);
                    return Ok(false);
                }
                Err(error) => return Err(error.into()),
            };
            let held = self.directions.iter().map(|direction| direction.held.len()).sum::<usize>();
            let Direction { model, held: queue, counts, .. } = &mut self.directions[direction];
            counts.packets += 1;
            counts.bytes += length as u64;
            match model.offer(monotonic_ns(), u32::try_from(length).unwrap_or(u32::MAX)) {
                Fate::Departs { at_ns } if held < MOST_HELD => {
                    queue.push_back(Packet { at_ns, length, bytes });
                    continue;
                }
                Fate::Departs { .. } => counts.failed += 1,
                Fate::Lost => counts.lost += 1,
                Fate::QueueFull => counts.queue_full += 1,
            }
            self.pool.push(bytes);
        }
        Ok(true)
    }

    /// Writes what is due.
    fn write_due(&mut self, direction: usize) {
        let Direction { held, counts, lateness, .. } = &mut self.directions[direction];
        while let Some(first) = held.front() {
            let now_ns = monotonic_ns();
            if first.at_ns > now_ns {
                return;
            }
            let Some(packet) = held.pop_front() else { return };
            match rustix::io::write(&self.ends[1 - direction], &packet.bytes[..packet.length]) {
                Ok(_) => {
                    counts.delivered += 1;
                    counts.delivered_bytes += packet.length as u64;
                    lateness.record((now_ns - packet.at_ns) / 1000);
                }
                Err(_) => counts.failed += 1,
            }
            self.pool.push(packet.bytes);
        }
    }

    /// Carries out a command.
    fn response(&mut self) -> io::Result<Requested> {
        let mut count = [0; 8];
        // Nothing to read: it was woken twice for one command.
        let _ = rustix::io::read(&*self.wake, &mut count);
        let requested = std::mem::take(&mut *self.requested.lock().unwrap_or_else(PoisonError::into_inner));
        if requested == Requested::Counts {
            let counts = [0, 1].map(|index| {
                let Direction { model, counts, lateness, .. } = &mut self.directions[index];
                let seen =
                    Counts { wire: model.wire_packets(), lateness: lateness.to_sparse(), ..counts.clone() };
                lateness.clear();
                seen
            });
            // A caller that did not wait for the response does not get it.
            let _ = self.response.try_send(counts);
        }
        Ok(requested)
    }

    /// Waits until something is to be done: which end can be read, and whether there is a command. With `peek`, it only looks.
    fn wait(&mut self, peek: bool) -> io::Result<[bool; 3]> {
        let next = self.directions.iter().filter_map(|direction| Some(direction.held.front()?.at_ns)).min();
        // An alarm that has gone off must be set again, or it never stops.
        if next != self.armed_ns || next.is_none_or(|at_ns| at_ns <= monotonic_ns()) {
            self.arm(next)?;
        }
        let mut polled = [
            PollFd::new(&self.ends[0], PollFlags::IN),
            PollFd::new(&self.ends[1], PollFlags::IN),
            PollFd::from_borrowed_fd(self.wake.as_fd(), PollFlags::IN),
            PollFd::new(&self.timer, PollFlags::IN),
        ];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        match poll(&mut polled, peek.then_some(&at_once)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if polled[..2].iter().any(|end| end.revents().intersects(PollFlags::ERR | PollFlags::HUP)) {
            return Err(io::Error::other("a TUN device of the link is gone"));
        }
        Ok([0, 1, 2].map(|index: usize| polled[index].revents().contains(PollFlags::IN)))
    }

    fn arm(&mut self, at_ns: Option<u64>) -> io::Result<()> {
        // All zeroes would disarm it: a departure at boot cannot be meant.
        let at = at_ns.map_or(0, |at_ns| at_ns.max(1));
        let second = 1_000_000_000;
        let it_value = Timespec { tv_sec: (at / second) as i64, tv_nsec: (at % second) as _ };
        let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &Itimerspec { it_interval, it_value })?;
        self.armed_ns = at_ns;
        Ok(())
    }
}
