//! Records of context switches, from a ring buffer that is shared with the kernel (`perf_event_open` with `context_switch`).
//!
//! Records of a thread are permitted to those who may trace it, if `perf_event_paranoid` is 2 or less; those of a processor to
//! root, or to all if it is 0 or less.
//!
//! *Does not:* interpret a record beyond its time and processor; [`super::switches`] and [`super::idle`] do.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

/// The kernel's `struct perf_event_attr`, version 3.
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
/// `PERF_COUNT_SW_DUMMY`, which counts nothing.
const DUMMY: u64 = 9;
/// `PERF_SAMPLE_TIME | PERF_SAMPLE_CPU`, which end each record.
const TIME_AND_CPU: u64 = 1 << 2 | 1 << 7;
/// `exclude_kernel`, `exclude_hv` (nothing in them is looked at), `watermark`, `sample_id_all`, `use_clockid`, `context_switch`.
const FLAGS: u64 = 1 << 5 | 1 << 6 | 1 << 14 | 1 << 18 | 1 << 25 | 1 << 26;
/// `PERF_FLAG_FD_CLOEXEC`.
const CLOSE_ON_EXEC: libc::c_ulong = 8;
/// Watermark in bytes that is never reached: records are polled.
const NEVER: u32 = 1 << 30;

/// Pages of the ring, with 170 records each: the preferred number, and the number that every user may lock for 32 threads.
const PAGES: [usize; 2] = [32, 2];
/// Offsets of `data_head`, written by the kernel, and `data_tail`, written by the reader.
const HEAD: usize = 1024;
const TAIL: usize = 1032;

const HEADER: usize = 8;
const RECORD_LOST: u32 = 2;
/// `PERF_RECORD_MISC_SWITCH_OUT`: a switch away from the thread.
pub const OUT: u16 = 1 << 13;

/// The thread or processor whose switches are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PerfTarget {
    /// A thread, on any processor.
    Thread(u32),
    /// All threads on a processor; needs `CAP_PERFMON`, or `perf_event_paranoid` of 0 or less.
    Processor(u32),
}

/// The records of one thread or processor.
#[derive(Debug)]
pub struct PerfRecords {
    memory: *mut u8,
    page: usize,
    pages: usize,
    _event: File,
}

// SAFETY: the memory belongs to this value alone, and is not bound to a thread.
unsafe impl Send for PerfRecords {}

impl PerfRecords {
    /// Starts recording.
    pub fn open(whose: PerfTarget) -> io::Result<Self> {
        let (thread, processor) = match whose {
            PerfTarget::Thread(thread) => (thread.cast_signed(), -1),
            PerfTarget::Processor(processor) => (-1, processor.cast_signed()),
        };
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
                thread,
                processor,
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

    /// Passes all new records to `each`, in order: type, `misc` field, and bytes with the header. False if records were lost.
    pub fn take(&mut self, mut each: impl FnMut(u32, u16, &[u8])) -> bool {
        let head = self.position(HEAD).load(Ordering::Acquire);
        let mut at = self.position(TAIL).load(Ordering::Relaxed);
        let mut is_complete = true;
        while at < head {
            let mut record = [0; 64];
            self.copy(at, &mut record[..HEADER]);
            let (kind, misc, length) = header(&record);
            // A length below that of the header would stop progress.
            let length = length.max(HEADER);
            let known = length.min(record.len());
            self.copy(at, &mut record[..known]);
            match kind {
                RECORD_LOST => is_complete = false,
                _ => each(kind, misc, &record[..known]),
            }
            at += length as u64;
        }
        self.position(TAIL).store(at, Ordering::Release);
        is_complete
    }

    fn position(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: the first page has these two fields of eight bytes, at a multiple of eight; the kernel shares them as atomics,
        // and they are there for as long as the mapping, which `self` owns.
        unsafe { AtomicU64::from_ptr(self.memory.add(offset).cast()) }
    }

    /// Copies from a position in the ring.
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

impl Drop for PerfRecords {
    fn drop(&mut self) {
        // SAFETY: mapped in `open` with this length, and not used after this.
        unsafe { libc::munmap(self.memory.cast(), (1 + self.pages) * self.page) };
    }
}

/// Type, `misc` field and length of a record.
fn header(record: &[u8; 64]) -> (u32, u16, usize) {
    let kind = u32::from_ne_bytes([record[0], record[1], record[2], record[3]]);
    let misc = u16::from_ne_bytes([record[4], record[5]]);
    (kind, misc, usize::from(u16::from_ne_bytes([record[6], record[7]])))
}

/// Time, in nanoseconds of `CLOCK_MONOTONIC`, and processor at the end of a record.
pub fn time_and_cpu(record: &[u8]) -> Option<(u64, u32)> {
    let (time, cpu) = record.get(record.len().checked_sub(16)?..)?.split_at(8);
    let cpu = cpu.get(..4)?;
    Some((u64::from_ne_bytes(time.try_into().ok()?), u32::from_ne_bytes(cpu.try_into().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_begins_with_what_it_is_and_ends_with_when_and_where() {
        let mut record = [0u8; 64];
        record[..4].copy_from_slice(&14u32.to_ne_bytes());
        record[4..6].copy_from_slice(&OUT.to_ne_bytes());
        record[6..8].copy_from_slice(&24u16.to_ne_bytes());
        record[8..16].copy_from_slice(&77u64.to_ne_bytes());
        record[16..20].copy_from_slice(&3u32.to_ne_bytes());
        assert_eq!(header(&record), (14, OUT, 24));
        assert_eq!(time_and_cpu(&record[..24]), Some((77, 3)));
        assert_eq!(time_and_cpu(&record[..12]), None);
    }
}
