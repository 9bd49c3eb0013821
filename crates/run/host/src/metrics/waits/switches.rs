//! Context switches of a thread, from the kernel's records.
//!
//! *Does not:* know when a blocked thread was woken; its wait since then is in the kernel's sum of all waits only.

use std::io;

use super::records::{OUT, PerfRecords, PerfTarget, time_and_cpu};

/// A switch of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Switch {
    /// `CLOCK_MONOTONIC`, in nanoseconds.
    pub at_ns: u64,
    pub cpu: u32,
    pub kind: SwitchKind,
}

/// Direction and cause of a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SwitchKind {
    /// The thread got a processor.
    In,
    Blocked,
    /// The thread lost its processor, still ready to run.
    Preempted,
}

const RECORD_SWITCH: u32 = 14;
const PREEMPTED: u16 = 1 << 14;

/// The switches of one thread.
#[derive(Debug)]
pub struct SwitchRecords(PerfRecords);

impl SwitchRecords {
    /// Starts recording the switches of a thread.
    pub fn open(thread: u32) -> io::Result<Self> {
        Ok(Self(PerfRecords::open(PerfTarget::Thread(thread))?))
    }

    /// Reads new switches, in order; false if some were lost.
    pub fn take(&mut self, switches: &mut impl Extend<Switch>) -> bool {
        self.0.take(|kind, misc, record| {
            if kind == RECORD_SWITCH {
                switches.extend(switch(misc, record));
            }
        })
    }
}

fn switch(misc: u16, record: &[u8]) -> Option<Switch> {
    let (at_ns, cpu) = time_and_cpu(record)?;
    let kind = match (misc & OUT != 0, misc & PREEMPTED != 0) {
        (false, _) => SwitchKind::In,
        (true, false) => SwitchKind::Blocked,
        (true, true) => SwitchKind::Preempted,
    };
    Some(Switch { at_ns, cpu, kind })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_is_read_from_its_record() {
        let mut record = [0u8; 24];
        record[8..16].copy_from_slice(&77u64.to_ne_bytes());
        record[16..20].copy_from_slice(&3u32.to_ne_bytes());
        assert_eq!(
            switch(OUT | PREEMPTED, &record),
            Some(Switch { at_ns: 77, cpu: 3, kind: SwitchKind::Preempted })
        );
        assert_eq!(switch(OUT | PREEMPTED, &record[..12]), None);
    }

    /// Needs the right to watch switches, and a machine that is not too busy.
    mod real_tests {
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
            match SwitchRecords::open(id) {
                // Not permitted, as in many containers: nothing to test.
                Err(refused) => {
                    assay_testbed::skip(&format!("the kernel does not let us watch switches: {refused}"))
                }
                Ok(mut switches) => {
                    let mut seen: Vec<Switch> = Vec::new();
                    while seen.iter().filter(|switch| switch.kind == SwitchKind::Blocked).count() < 1_000 {
                        go.send(()).expect("it waits");
                        said.recv().expect("it responds");
                        assert!(switches.take(&mut seen), "none were lost");
                    }
                    assert!(seen.is_sorted_by_key(|switch| switch.at_ns));
                    let takes_turns = |pair: &[Switch]| {
                        (pair[0].kind == SwitchKind::In) != (pair[1].kind == SwitchKind::In)
                    };
                    assert!(seen.windows(2).all(takes_turns), "in and out");
                }
            }
            drop(go);
            thread.join().expect("it ends");
        }
    }
}
