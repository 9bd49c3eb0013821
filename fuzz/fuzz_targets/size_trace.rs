//! Traces of requests: the first byte says how many bytes a piece has, the rest is a trace in the binary form, and lines of CSV.
//! Whatever it is, nothing panics, and the pieces that a trace comes in do not change its records.
#![no_main]

use assay_size::trace::Record;
use assay_size::trace::csv::Columns;
use assay_size::trace::oracle::{Oracle, RECORD_BYTES};
use libfuzzer_sys::fuzz_target;

fn records(trace: &[u8], piece: usize) -> (Vec<Record>, usize) {
    let (mut oracle, mut found) = (Oracle::default(), Vec::new());
    trace.chunks(piece).for_each(|piece| oracle.read(piece, |record| found.push(record)));
    (found, oracle.left_over())
}

fuzz_target!(|bytes: &[u8]| {
    let Some((first, trace)) = bytes.split_first() else { return };
    let whole = records(trace, trace.len().max(1));
    assert_eq!(whole, records(trace, usize::from(*first).max(1)));
    assert_eq!(whole.0.len() * RECORD_BYTES + whole.1, trace.len());
    let mut lines = trace.split(|byte| *byte == b'\n');
    if let Some(Ok(columns)) = lines.next().map(Columns::of) {
        for record in lines.filter_map(|line| columns.record(line, |key| key.len() as u64).ok()) {
            assert_eq!(record.bytes.is_some(), columns.has_sizes());
        }
    }
});
