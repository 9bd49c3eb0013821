//! Bytes that claim to be a table in Parquet: rows, or an error that names the file; and no more memory than a multiple of the file
//! (which the fuzzer bounds).
#![no_main]

use std::cell::OnceCell;

use assay_record::spe::{read_exchanges, read_listeners, read_responses};
use assay_record::xact_log::XactLog;
use assay_record::table::{Table, columns_of};
use libfuzzer_sys::fuzz_target;

thread_local! {
    static FILE: OnceCell<tempfile::NamedTempFile> = const { OnceCell::new() };
}

fuzz_target!(
    // The reader of tables catches panics of the library that decodes them; what nobody catches still ends the target.
    init: { std::panic::set_hook(Box::new(|_| ())) },
    |input: &[u8]| {
        FILE.with(|file| {
            let path = file.get_or_init(|| tempfile::NamedTempFile::new().unwrap()).path();
            std::fs::write(path, input).unwrap();
            let name = path.file_name().unwrap().to_str().unwrap();
            let said = match columns_of(path) {
                Ok(columns) => {
                    let names: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
                    Table::read(path, &names).err().map(|error| error.to_string())
                }
                Err(error) => Some(error.to_string()),
            };
            let readers = [
                said,
                read_responses(path).err().map(|error| error.to_string()),
                read_listeners(path).err().map(|error| error.to_string()),
                read_exchanges(path).err().map(|error| error.to_string()),
                XactLog::read(path).err().map(|error| error.to_string()),
            ];
            for said in readers.into_iter().flatten() {
                assert!(said.contains(name), "{said}");
            }
        });
    }
);
