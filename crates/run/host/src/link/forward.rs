//! Forwarding of packets between the ends of a link.
//!
//! One thread carries both directions of a link between two TUN devices: it reads packets, passes them to the
//! [`model`](crate::link::model), and writes each at its departure time. It sleeps in one `ppoll` with one `timerfd` set to the
//! next departure. It counts packets, and how late it wrote them, which is an error of the link itself.

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

use crate::link::model::{LinkModel, PacketFate};
use crate::link::realtime;
use crate::link::settings::LinkSettings;

/// Size of a packet buffer: the MTU, rounded up.
const PACKET_BYTES: usize = 2048;
/// Packets that are read in a row before due ones are written.
const BATCH: usize = 16;
/// Upper bound on queued packets of both directions: 256 MiB.
const MAX_QUEUED: usize = 128 * 1024;
/// Timeout of commands to the thread.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Counters of one direction since the start of the link.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LinkCounts {
    /// Packets sent into the link.
    pub packets: u64,
    /// Bytes of `packets`, with IP headers.
    pub bytes: u64,
    pub delivered: u64,
    pub delivered_bytes: u64,
    /// Packets lost by the loss plan.
    pub lost: u64,
    /// Packets dropped at a full queue.
    pub queue_full: u64,
    /// Packets that got past the queue, which the loss plan counts.
    pub wire: u64,
    /// Packets dropped by the emulation itself: too many were queued, or the device refused them.
    pub failed: u64,
    /// Lateness of departures since the last call.
    pub lateness: SparseHistogram,
}

/// A running link, which ends when it is dropped.
#[derive(Debug)]
pub struct Forwarder {
    wake: Arc<OwnedFd>,
    command: Arc<Mutex<Command>>,
    responses: Receiver<[LinkCounts; 2]>,
    thread: Option<JoinHandle<io::Result<()>>>,
    /// True if the thread has real-time priority.
    pub realtime: bool,
}

/// Commands to the thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Command {
    #[default]
    Nothing,
    ReadCounts,
    End,
}

impl Forwarder {
    /// Starts forwarding between two TUN devices; direction 0 is from the first to the second.
    pub fn start(ends: [OwnedFd; 2], settings: &LinkSettings, seed: u64) -> io::Result<Self> {
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let timer =
            timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        let command = Arc::new(Mutex::new(Command::default()));
        let (response, responses) = sync_channel(1);
        let (realtime_sender, realtime_receiver) = sync_channel(1);
        let mut worker = ForwardLoop {
            directions: [0, 1].map(|direction| LinkDirection::new(settings, seed, direction)),
            ends,
            timer,
            armed_ns: None,
            pool: Vec::new(),
            wake: wake.clone(),
            command: command.clone(),
            response,
        };
        let thread = std::thread::Builder::new().name("link".into()).spawn(move || {
            // The receiver below waits for this message.
            let _ = realtime_sender.send(realtime::request());
            worker.run()
        })?;
        let realtime = realtime_receiver.recv().unwrap_or(false);
        Ok(Self { wake, command, responses, thread: Some(thread), realtime })
    }

    /// Counters by direction.
    pub fn counts(&mut self) -> io::Result<[LinkCounts; 2]> {
        self.request(Command::ReadCounts);
        self.responses.recv_timeout(RESPONSE_TIMEOUT).map_err(|_| match self.end() {
            Err(error) => error,
            Ok(()) => io::Error::new(io::ErrorKind::TimedOut, "the link does not respond"),
        })
    }

    pub fn end(&mut self) -> io::Result<()> {
        let Some(thread) = self.thread.take() else { return Ok(()) };
        self.request(Command::End);
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the link's thread panicked")))
    }

    fn request(&self, command: Command) {
        *self.command.lock().unwrap_or_else(PoisonError::into_inner) = command;
        // Fails only at 2⁶⁴ - 1 unread events.
        let _ = rustix::io::write(&*self.wake, &1_u64.to_ne_bytes());
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        // No caller is left to report an error to.
        let _ = self.end();
    }
}

struct QueuedPacket {
    at_ns: u64,
    length: usize,
    bytes: Box<[u8]>,
}

struct LinkDirection {
    model: LinkModel,
    queued: VecDeque<QueuedPacket>,
    counts: LinkCounts,
    lateness: Histogram,
}

impl LinkDirection {
    fn new(settings: &LinkSettings, seed: u64, direction: u8) -> Self {
        Self {
            model: LinkModel::new(settings, seed, direction),
            queued: VecDeque::new(),
            counts: LinkCounts::default(),
            lateness: Histogram::new(),
        }
    }
}

struct ForwardLoop {
    ends: [OwnedFd; 2],
    directions: [LinkDirection; 2],
    timer: OwnedFd,
    armed_ns: Option<u64>,
    pool: Vec<Box<[u8]>>,
    wake: Arc<OwnedFd>,
    command: Arc<Mutex<Command>>,
    response: SyncSender<[LinkCounts; 2]>,
}

impl ForwardLoop {
    fn run(&mut self) -> io::Result<()> {
        let mut ready = [true; 3];
        loop {
            for (direction, more) in ready.iter_mut().take(2).enumerate() {
                // After a full batch there may be more to read.
                *more = *more && self.read(direction)?;
                self.write_due(0);
                self.write_due(1);
            }
            if ready[2] && self.take_command()? == Command::End {
                return Ok(());
            }
            if !(ready[0] || ready[1]) || ready[2] {
                ready = self.wait(ready[0] || ready[1])?;
            }
        }
    }

    /// Reads a batch of packets from one end; true if there may be more.
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
            let queued = self.directions.iter().map(|direction| direction.queued.len()).sum::<usize>();
            let LinkDirection { model, queued: queue, counts, .. } = &mut self.directions[direction];
            counts.packets += 1;
            counts.bytes += length as u64;
            match model.send(monotonic_ns(), u32::try_from(length).unwrap_or(u32::MAX)) {
                PacketFate::Departs { at_ns } if queued < MAX_QUEUED => {
                    queue.push_back(QueuedPacket { at_ns, length, bytes });
                    continue;
                }
                PacketFate::Departs { .. } => counts.failed += 1,
                PacketFate::Lost => counts.lost += 1,
                PacketFate::QueueFull => counts.queue_full += 1,
            }
            self.pool.push(bytes);
        }
        Ok(true)
    }

    /// Writes the packets that are due.
    fn write_due(&mut self, direction: usize) {
        let LinkDirection { queued, counts, lateness, .. } = &mut self.directions[direction];
        while let Some(first) = queued.front() {
            let now_ns = monotonic_ns();
            if first.at_ns > now_ns {
                return;
            }
            let Some(packet) = queued.pop_front() else { return };
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

    /// Takes the pending command, and responds to it.
    fn take_command(&mut self) -> io::Result<Command> {
        let mut count = [0; 8];
        // There is nothing to read if the command was taken at an earlier wake-up.
        let _ = rustix::io::read(&*self.wake, &mut count);
        let command = std::mem::take(&mut *self.command.lock().unwrap_or_else(PoisonError::into_inner));
        if command == Command::ReadCounts {
            let counts = [0, 1].map(|index| {
                let LinkDirection { model, counts, lateness, .. } = &mut self.directions[index];
                let counted = LinkCounts {
                    wire: model.wire_packets(),
                    lateness: lateness.to_sparse(),
                    ..counts.clone()
                };
                lateness.clear();
                counted
            });
            // The channel is full if an earlier caller has timed out.
            let _ = self.response.try_send(counts);
        }
        Ok(command)
    }

    /// Waits for readable ends and commands, or only polls with `peek`; returns readiness of both ends and of a command.
    fn wait(&mut self, peek: bool) -> io::Result<[bool; 3]> {
        let next = self.directions.iter().filter_map(|direction| Some(direction.queued.front()?.at_ns)).min();
        // An expired timer stays readable until it is set again.
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
        // A time of zero would disarm the timer.
        let at = at_ns.map_or(0, |at_ns| at_ns.max(1));
        let second = 1_000_000_000;
        let it_value = Timespec { tv_sec: (at / second) as i64, tv_nsec: (at % second) as _ };
        let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &Itimerspec { it_interval, it_value })?;
        self.armed_ns = at_ns;
        Ok(())
    }
}
