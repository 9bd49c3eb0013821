//! When a thread got a processor, and when it gave it up or lost it: from the kernel, exactly.
//!
//! The kernel writes a record of each switch into memory that it shares with us (`perf_event_open` with `context_switch`).
//! It does so for the threads of whoever asks where `perf_event_paranoid` is 2 or less, and always for root.
//!
//! *Does not:* know when a thread that slept was woken. What it waited from then on is in the kernel's sum of all waits.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

/// A switch of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Switch {
    /// `CLOCK_MONOTONIC`, in nanoseconds.
    pub at_ns: u64,
    /// On which processor.
    pub cpu: u32,
    /// What happened.
    pub kind: Kind,
}

/// What happened to a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It got a processor.
    In,
    /// It slept.
    Slept,
    /// It lost the processor, and was ready to run on.
    Lost,
}

/// The kernel's `struct perf_event_attr`, as long as its version 3.
#[repr(C)]
#[derive(Debug, Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    configs: [u64; 2],
    branches: u64,
    registers: u64,
    stack: u32,
    clock: i32,
}

const SOFTWARE: u32 = 1;
/// An event that never happens by itself.
const DUMMY: u64 = 9;
/// Each record ends with its time and its processor.
const TIME_AND_CPU: u64 = 1 << 2 | 1 << 7;
/// `exclude_kernel`, `exclude_hv` (nothing in them is looked at), `watermark`, `sample_id_all`, `use_clockid`, `context_switch`.
const FLAGS: u64 = 1 << 5 | 1 << 6 | 1 << 14 | 1 << 18 | 1 << 25 | 1 << 26;
/// `PERF_FLAG_FD_CLOEXEC`.
const CLOSE_ON_EXEC: libc::c_ulong = 8;
/// Nobody is woken for a record: they are read when it suits.
const NEVER: u32 = 1 << 30;

/// Pages for records, of which there are 170 on each: as many as are wanted, and as few as every user may have for 32 threads.
const PAGES: [usize; 2] = [32, 2];
/// Where the kernel says how far it has written, and we how far we have read.
const HEAD: usize = 1024;
const TAIL: usize = 1032;

const HEADER: usize = 8;
const RECORD_LOST: u32 = 2;
const RECORD_SWITCH: u32 = 14;
const OUT: u16 = 1 << 13;
const PREEMPTED: u16 = 1 << 14;

/// The records of one thread.
#[derive(Debug)]
pub struct Switches {
    memory: *mut u8,
    page: usize,
    pages: usize,
    _event: File,
}

// SAFETY: the memory belongs to this value alone, and is not bound to a thread.
unsafe impl Send for Switches {}

impl Switches {
    /// Of a thread from now on; why not, where the kernel refuses.
    pub fn of(thread: u32) -> io::Result<Self> {
        let attributes = Attributes {
            kind: SOFTWARE,
            size: size_of::<Attributes>() as u32,
            config: DUMMY,
            sample_type: TIME_AND_CPU,
            flags: FLAGS,
            wakeup: NEVER,
            clock: libc::CLOCK_MONOTONIC,
            ..Attributes::default()
        };
        // SAFETY: `attributes` is as long as its `size` says and outlives the call; the rest are numbers.
        let event = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                &raw const attributes,
                thread.cast_signed(),
                -1,
                -1,
                CLOSE_ON_EXEC,
            )
        };
        let event =
            i32::try_from(event).ok().filter(|event| *event >= 0).ok_or_else(io::Error::last_os_error)?;
        // SAFETY: the kernel has just opened it, and nobody else knows of it.
        let event = unsafe { File::from_raw_fd(event) };
        let page = rustix::param::page_size();
        let mut refused = None;
        for pages in PAGES {
            let (length, both) = ((1 + pages) * page, libc::PROT_READ | libc::PROT_WRITE);
            // SAFETY: a new mapping, wherever the kernel likes, of a descriptor that is open.
            let memory =
                unsafe { libc::mmap(ptr::null_mut(), length, both, libc::MAP_SHARED, event.as_raw_fd(), 0) };
            if memory != libc::MAP_FAILED {
                return Ok(Self { memory: memory.cast(), page, pages, _event: event });
            }
            refused = Some(io::Error::last_os_error());
        }
        Err(refused.unwrap_or_else(|| io::ErrorKind::Unsupported.into()))
    }

    /// Takes all records since the last call, in order; false: some were lost.
    pub fn take(&mut self, switches: &mut impl Extend<Switch>) -> bool {
        let head = self.place(HEAD).load(Ordering::Acquire);
        let mut at = self.place(TAIL).load(Ordering::Relaxed);
        let mut is_complete = true;
        while at < head {
            let mut record = [0; 64];
            self.copy(at, &mut record[..HEADER]);
            let (kind, misc, length) = header(&record);
            // A record that says that it is shorter than its header would never be passed.
            let length = length.max(HEADER);
            let known = length.min(record.len());
            self.copy(at, &mut record[..known]);
            match kind {
                RECORD_SWITCH => switches.extend(switch(misc, &record[..known])),
                RECORD_LOST => is_complete = false,
                _ => {}
            }
            at += length as u64;
        }
        self.place(TAIL).store(at, Ordering::Release);
        is_complete
    }

    fn place(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: the first page has these two fields of eight bytes, at a multiple of eight; the kernel shares them as atomics,
        // and they are there for as long as the mapping, which `self` owns.
        unsafe { AtomicU64::from_ptr(self.memory.add(offset).cast()) }
    }

    /// Copies from a place in the ring of records.
    fn copy(&self, from: u64, into: &mut [u8]) {
        let size = self.pages * self.page;
        let place = (from % size as u64) as usize;
        let first = into.len().min(size - place);
        // SAFETY: the pages after the first are the ring; both parts lie within it, and `into` holds both. The kernel does not write
        // there before the tail is moved.
        unsafe {
            let ring = self.memory.add(self.page);
            ptr::copy_nonoverlapping(ring.add(place), into.as_mut_ptr(), first);
            ptr::copy_nonoverlapping(ring, into.as_mut_ptr().add(first), into.len() - first);
        }
    }
}

impl Drop for Switches {
    fn drop(&mut self) {
        // SAFETY: mapped in `of` with this length, and not used after this.
        unsafe { libc::munmap(self.memory.cast(), (1 + self.pages) * self.page) };
    }
}

/// What a record is, what is particular about it, and its length.
fn header(record: &[u8; 64]) -> (u32, u16, usize) {
    let kind = u32::from_ne_bytes([record[0], record[1], record[2], record[3]]);
    let misc = u16::from_ne_bytes([record[4], record[5]]);
    (kind, misc, usize::from(u16::from_ne_bytes([record[6], record[7]])))
}

fn switch(misc: u16, record: &[u8]) -> Option<Switch> {
    let at_ns = u64::from_ne_bytes(record.get(8..16)?.try_into().ok()?);
    let cpu = u32::from_ne_bytes(record.get(16..20)?.try_into().ok()?);
    let kind = match (misc & OUT != 0, misc & PREEMPTED != 0) {
        (false, _) => Kind::In,
        (true, false) => Kind::Slept,
        (true, true) => Kind::Lost,
    };
    Some(Switch { at_ns, cpu, kind })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_thread_that_sleeps_and_wakes_leaves_records_of_it() {
        let (go, gone_on) = mpsc::channel::<()>();
        let (say, said) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let id = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
            say.send(id).expect("is received");
            while gone_on.recv().is_ok() {
                say.send(id).expect("is received");
            }
        });
        let id = said.recv().expect("it sends its id");
        match Switches::of(id) {
            // Not permitted, as in many containers: nothing to test.
            Err(refused) => eprintln!("skipped: the kernel does not let us watch switches: {refused}"),
            Ok(mut switches) => {
                let mut seen: Vec<Switch> = Vec::new();
                while seen.iter().filter(|switch| switch.kind == Kind::Slept).count() < 1_000 {
                    go.send(()).expect("it waits");
                    said.recv().expect("it responds");
                    assert!(switches.take(&mut seen), "none were lost");
                }
                assert!(seen.is_sorted_by_key(|switch| switch.at_ns));
                let takes_turns = |pair: &[Switch]| (pair[0].kind == Kind::In) != (pair[1].kind == Kind::In);
                assert!(seen.windows(2).all(takes_turns), "in and out");
            }
        }
        drop(go);
        thread.join().expect("it ends");
    }

    #[test]
    fn a_record_is_read_by_its_fields() {
        let mut record = [0u8; 64];
        record[..4].copy_from_slice(&RECORD_SWITCH.to_ne_bytes());
        record[4..6].copy_from_slice(&(OUT | PREEMPTED).to_ne_bytes());
        record[6..8].copy_from_slice(&24u16.to_ne_bytes());
        record[8..16].copy_from_slice(&77u64.to_ne_bytes());
        record[16..20].copy_from_slice(&3u32.to_ne_bytes());
        let (kind, misc, length) = header(&record);
        assert_eq!((kind, length), (RECORD_SWITCH, 24));
        assert_eq!(switch(misc, &record[..24]), Some(Switch { at_ns: 77, cpu: 3, kind: Kind::Lost }));
        assert_eq!(switch(misc, &record[..12]), None);
    }
}
