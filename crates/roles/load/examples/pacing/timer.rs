//! How exactly this machine wakes anybody at all. A bare timer loop: no network, no request.

use std::error::Error;

use assay_net::clock::monotonic_ns;

use crate::sys::{Alarm, read_rows, write_rows};

/// Sleeps until each deadline in turn and notes when it was awake.
pub fn run(due: &str, start_ns: u64, out: &str) -> Result<(), Box<dyn Error>> {
    let due = read_rows(due)?;
    let alarm = Alarm::new()?;
    let mut woken = Vec::with_capacity(due.len());
    for (id, offset_ns) in due {
        let at_ns = start_ns + offset_ns;
        if monotonic_ns() < at_ns {
            alarm.set(at_ns)?;
            alarm.sleep()?;
        }
        woken.push((id, monotonic_ns()));
    }
    Ok(write_rows(out, &woken)?)
}
