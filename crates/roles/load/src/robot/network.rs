//! Timer, sockets and buffers of a worker's thread.

use std::rc::Rc;

use assay_http::date::DateCache;
use assay_measurement::measured::Measured;
use assay_net::rx_timestamps::{ClockOffset, RxTimestamp};
use assay_net::sockets::Sockets;
use assay_net::timer::{Timer, TimerKey};

use super::worker::RobotTimerEvent;
use crate::monitor::SelfCheck;

/// Bytes that are read at once.
const BUFFER_BYTES: usize = 128 * 1024;

#[derive(Debug)]
pub struct Network {
    timer: Rc<Timer<RobotTimerEvent>>,
    sockets: Rc<Sockets>,
    self_check: SelfCheck,
    /// Offset between the kernel's timestamps and `CLOCK_MONOTONIC`.
    arrivals: ClockOffset,
    /// Everything is read into this.
    input: Box<[u8]>,
    /// Requests are put together here.
    output: Vec<u8>,
    pub dates: DateCache,
}

impl Network {
    pub fn new(timer: Rc<Timer<RobotTimerEvent>>, sockets: Rc<Sockets>, self_check: SelfCheck) -> Self {
        Self {
            timer,
            sockets,
            self_check,
            arrivals: ClockOffset::measure(),
            input: vec![0; BUFFER_BYTES].into_boxed_slice(),
            output: Vec::with_capacity(4096),
            dates: DateCache::default(),
        }
    }

    pub fn sockets(&self) -> &Sockets {
        &self.sockets
    }

    pub fn schedule(&self, at_ns: u64, event: RobotTimerEvent) -> TimerKey {
        self.timer.schedule(at_ns, event)
    }

    pub fn cancel(&self, event: TimerKey) {
        self.timer.cancel(event);
    }

    /// Time for which bytes that are read at `now_ns` lay unread, in microseconds.
    pub fn unread_us(&self, received: RxTimestamp, now_ns: u64) -> u32 {
        self.arrivals.unread_us(received, now_ns)
    }

    /// Measures the offset of the kernel's timestamps again: they go by the wall clock, which may be slewed.
    pub fn measure_clock_offset(&mut self) {
        self.arrivals = ClockOffset::measure();
    }

    /// Lends the buffer that everything is read into; `put_input` gives it back.
    pub fn take_input(&mut self) -> Box<[u8]> {
        std::mem::take(&mut self.input)
    }

    pub fn put_input(&mut self, input: Box<[u8]>) {
        self.input = input;
    }

    /// Lends the buffer for a request, empty; `put_output` gives it back.
    pub fn take_output(&mut self) -> Vec<u8> {
        let mut output = std::mem::take(&mut self.output);
        output.clear();
        output
    }

    pub fn put_output(&mut self, output: Vec<u8>) {
        self.output = output;
    }

    /// Stalls of the thread since the last tick.
    pub fn stalls(&mut self, now_ns: u64) -> Vec<Measured> {
        self.self_check.breather.yield_if_due(now_ns);
        let Some(monitor) = &mut self.self_check.monitor else { return Vec::new() };
        let stalls = monitor.tick(now_ns, &mut self.timer.lag_recorder());
        stalls.into_iter().map(|stall| Measured::Stall(stall.into())).collect()
    }

    /// Measurements of the thread in the interval that ends, which is of this phase.
    pub fn end_interval(&mut self, now_ns: u64, phase: u16) -> Option<Measured> {
        let monitor = self.self_check.monitor.as_mut()?;
        let interval = monitor.end_interval(now_ns, phase, &mut self.timer.lag_recorder())?;
        Some(Measured::Thread(interval.into()))
    }
}
