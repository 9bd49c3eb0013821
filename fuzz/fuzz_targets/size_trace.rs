//! Traces of requests: the first byte says how many bytes a piece has, the rest is a trace in the binary forms, and lines of text whose
//! columns the first line names, a published form, or somebody. Whatever it is, nothing panics, the pieces that a trace comes in do not
//! change its records, and a request of a trace with sizes has one that is possible.
#![no_main]

use assay_logs::size::requests::LARGEST_BYTES;
use assay_logs::size::trace::Record;
use assay_logs::size::trace::columns::TraceLine;
use assay_logs::size::trace::published::PUBLISHED_TRACES;
use assay_logs::size::trace::lcs::Lcs;
use assay_logs::size::trace::oracle::{Oracle, RECORD_BYTES};
use assay_logs::size::trace::vscsi::Vscsi;
use assay_logs::size::trace::text::{ColumnNaming, TextTrace, are_columns_named_in, check_names, trim};
use libfuzzer_sys::fuzz_target;

fn records(trace: &[u8], piece: usize) -> (Vec<Record>, usize) {
    let (mut oracle, mut found) = (Oracle::default(), Vec::new());
    trace.chunks(piece).for_each(|piece| oracle.read(piece, |record| found.push(record)));
    (found, oracle.left_over())
}

fn records_of_lcs(trace: &[u8], piece: usize) -> Option<Vec<Record>> {
    let (mut lcs, mut found) = (Lcs::default(), Vec::new());
    let read = trace.chunks(piece).try_for_each(|piece| lcs.read(piece, |record| found.push(record)));
    read.is_ok().then_some(found)
}

fn records_of_vscsi(trace: &[u8], piece: usize) -> Option<Vec<Record>> {
    let (mut vscsi, mut found) = (Vscsi::default(), Vec::new());
    let read = trace.chunks(piece).try_for_each(|piece| vscsi.read(piece, |record| found.push(record)));
    read.is_ok().then_some(found)
}

fn read_lines(trace: &[u8], naming: &ColumnNaming) {
    let Ok(text) = TextTrace::of(trace, true, naming) else { return };
    let mut operations = text.columns.operations();
    for line in trace.split(|byte| *byte == b'\n').map(trim).skip(text.head_lines) {
        match text.columns.read(line, &mut operations) {
            Ok(TraceLine::Requests { record, count, .. }) => {
                assert_eq!(record.bytes.is_some(), text.columns.has_sizes());
                assert!(count > 0 && record.bytes.is_none_or(|bytes| bytes <= LARGEST_BYTES));
            }
            Ok(TraceLine::Other) => {}
            Err(malformed) => assert!(!text.columns.reason(malformed).is_empty()),
        }
    }
    text.columns.notes();
}

fuzz_target!(|bytes: &[u8]| {
    let Some((first, trace)) = bytes.split_first() else { return };
    let (whole, piece) = (trace.len().max(1), usize::from(*first).max(1));
    let read = records(trace, whole);
    assert_eq!(read, records(trace, piece));
    assert_eq!(read.0.len() * RECORD_BYTES + read.1, trace.len());
    assert_eq!(records_of_lcs(trace, whole), records_of_lcs(trace, piece));
    assert_eq!(records_of_vscsi(trace, whole), records_of_vscsi(trace, piece));
    let line = trace.split(|byte| *byte == b'\n').next().unwrap_or_default();
    are_columns_named_in(line);
    read_lines(trace, &ColumnNaming::FirstLine);
    PUBLISHED_TRACES.iter().for_each(|known| read_lines(trace, &ColumnNaming::PublishedTrace(known)));
    let names = String::from_utf8_lossy(line).into_owned();
    if check_names(&names).is_ok() {
        read_lines(trace, &ColumnNaming::Given(names));
    }
});
