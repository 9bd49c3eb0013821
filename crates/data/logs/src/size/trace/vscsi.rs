//! The binary form of CloudPhysics' traces of virtual disks (`vscsi`), as libCacheSim reads it: records, little endian. In version 1 a serial
//! number (u32), the length in bytes (u32), the number of segments (u32), the command of SCSI (u16), the version (in the upper half of u16), the block
//! (u64), and the time in microseconds (u64). In version 2 the command and the version come first, and the response time (u64) last.

use thiserror::Error;

use super::Record;
use super::lcs::number;
use super::operation::Operations;

/// Offsets of the fields of a record, by version.
#[derive(Debug)]
struct VscsiLayout {
    record_bytes: usize,
    length: usize,
    command: usize,
    block: usize,
    time: usize,
}

const LAYOUTS: [VscsiLayout; 2] = [
    VscsiLayout { record_bytes: 32, length: 4, command: 12, block: 16, time: 24 },
    VscsiLayout { record_bytes: 40, length: 8, command: 0, block: 16, time: 24 },
];
/// Records that must say the version.
const SURE_RECORDS: usize = 2;

/// No trace of this form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("cannot read the trace: its first two records do not say version 1 or 2, as those of vscsi do")]
pub struct VscsiError;

/// True if a trace begins like one in this form.
pub fn is_vscsi(head: &[u8]) -> bool {
    layout(head).is_some()
}

/// The layout of records of which the first all say its version.
fn layout(head: &[u8]) -> Option<&'static VscsiLayout> {
    let says = |version: u64, layout: &VscsiLayout| {
        let records = head.chunks_exact(layout.record_bytes);
        // The version is behind the command.
        records.len() >= SURE_RECORDS
            && records.take(64).all(|record| number(record, layout.command + 3, 1) == version)
    };
    (1..).zip(&LAYOUTS).find(|(version, layout)| says(*version, layout)).map(|(_, layout)| layout)
}

#[derive(Debug, Default)]
pub struct Vscsi {
    layout: Option<&'static VscsiLayout>,
    /// The beginning of what the last piece ended in.
    rest: Vec<u8>,
    pub operations: Operations,
}

impl Vscsi {
    /// Reads the next piece.
    ///
    /// # Errors
    /// If the trace is none of these.
    pub fn read(&mut self, piece: &[u8], mut each: impl FnMut(Record)) -> Result<(), VscsiError> {
        self.rest.extend_from_slice(piece);
        let layout = match self.layout {
            Some(layout) => layout,
            None if self.rest.len() < SURE_RECORDS * LAYOUTS[1].record_bytes => return Ok(()),
            None => layout(&self.rest).ok_or(VscsiError)?,
        };
        self.layout = Some(layout);
        let mut records = self.rest.chunks_exact(layout.record_bytes);
        for record in &mut records {
            if self.operations.parse(name(record[layout.command]).as_bytes(), 1) {
                let time_ms = number(record, layout.time, 8) / 1000;
                each(Record::plain(
                    number(record, layout.block, 8),
                    Some(number(record, layout.length, 4)),
                    Some(time_ms as i64),
                ));
            }
        }
        self.rest = records.remainder().to_vec();
        Ok(())
    }

    /// Bytes after the last whole record, and bytes of a record; none: the trace is not truncated.
    pub fn left_over(&self) -> Option<(usize, usize)> {
        let record_bytes = self.layout.map_or(LAYOUTS[1].record_bytes, |layout| layout.record_bytes);
        Some((self.rest.len(), record_bytes)).filter(|(left, _)| *left > 0)
    }
}

/// Operation of a SCSI command: those that read and write have codes for 6, 10, 12 and 16 bytes.
fn name(command: u8) -> String {
    match command {
        0x08 | 0x28 | 0xa8 | 0x88 => "read".into(),
        0x0a | 0x2a | 0xaa | 0x8a => "write".into(),
        other => format!("command {other:#04x}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A command, a block, and a number of bytes, at a second.
    fn record(version: u16, command: u16, block: u64, length: u32, at_s: u64) -> Vec<u8> {
        let (command, version_bytes) = (command.to_le_bytes(), (version << 8).to_le_bytes());
        let [serial, length, segments] = [7, length, 1].map(u32::to_le_bytes);
        let [block, time, response] = [block, at_s * 1_000_000 + 999, 5].map(u64::to_le_bytes);
        if version == 1 {
            [&serial[..], &length, &segments, &command, &version_bytes, &block, &time].concat()
        } else {
            [&command[..], &version_bytes, &serial, &length, &segments, &block, &time, &response].concat()
        }
    }

    #[test]
    fn reads_of_both_versions_are_requests_and_other_commands_are_counted() {
        for version in [1, 2] {
            let commands = [(0x28, 1), (0x2a, 2), (0x88, 3), (0x12, 0)];
            let trace =
                commands.map(|(command, block)| record(version, command, block << 40, 4096, block)).concat();
            for piece in [1, 33, 1000] {
                let (mut vscsi, mut found) = (Vscsi::default(), Vec::new());
                let whole = &trace[..trace.len() - 1];
                whole.chunks(piece).for_each(|piece| vscsi.read(piece, |record| found.push(record)).unwrap());
                let expected =
                    [1, 3].map(|block| Record::plain(block << 40, Some(4096), Some(block as i64 * 1000)));
                assert_eq!(found, expected, "{version}");
                let record_bytes = if version == 1 { 32 } else { 40 };
                assert_eq!(vscsi.left_over(), Some((record_bytes - 1, record_bytes)));
                vscsi.read(&trace[trace.len() - 1..], |_| {}).unwrap();
                let names: Vec<&str> =
                    vscsi.operations.operations.iter().map(|operations| operations.name.as_str()).collect();
                assert_eq!((names, vscsi.left_over()), (vec!["read", "write", "command 0x12"], None));
            }
            assert!(is_vscsi(&trace));
        }
    }

    #[test]
    fn what_is_no_such_trace_is_refused() {
        let mixed = [record(2, 0x28, 1, 1, 1), record(3, 0x28, 1, 1, 1)].concat();
        for trace in [&mixed[..], &[0; 80], &b"time,id,size\n1,a,5\n".repeat(9)] {
            assert!(!is_vscsi(trace));
            assert_eq!(Vscsi::default().read(trace, |_| {}), Err(VscsiError));
        }
        assert!(!is_vscsi(&record(1, 0x28, 1, 1, 1)), "one record is too few");
    }
}
