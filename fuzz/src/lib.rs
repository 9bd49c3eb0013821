//! Directories of records, damaged by what a fuzzer chooses: what is tried are files that look right almost everywhere.
//!
//! *Does not:* judge what a reader makes of them; each target does.

use std::fs;
use std::path::{Path, PathBuf};

/// A directory that is damaged and put right again, over and over.
pub struct Template {
    files: Vec<(PathBuf, Vec<u8>)>,
}

impl Template {
    /// What lies right in a directory, now.
    pub fn of(directory: &Path) -> Self {
        let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
        let whole = |path: PathBuf| (path.clone(), fs::read(path).unwrap());
        let mut files: Vec<_> = entries.filter(|path| path.is_file()).map(whole).collect();
        files.sort();
        Self { files }
    }

    /// Makes the changes (six bytes each, at most eight), gives the names of the files that differ to `check`, and puts them right.
    pub fn damaged(&self, changes: &[u8], check: impl FnOnce(&[&str])) {
        let mut files: Vec<Vec<u8>> = self.files.iter().map(|(_, bytes)| bytes.clone()).collect();
        for each in changes.chunks_exact(6).take(8) {
            let [at, with] = [2, 4].map(|from| u16::from_le_bytes([each[from], each[from + 1]]));
            change(&mut files[usize::from(each[0]) % self.files.len()], each[1], at, with);
        }
        let changed: Vec<_> = self.files.iter().zip(&files).filter(|((_, before), now)| before != *now).collect();
        changed.iter().for_each(|((path, _), now)| fs::write(path, now).unwrap());
        let name = |path: &'_ PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
        let names: Vec<String> = changed.iter().map(|((path, _), _)| name(path)).collect();
        check(&names.iter().map(String::as_str).collect::<Vec<_>>());
        changed.iter().for_each(|((path, before), _)| fs::write(path, before).unwrap());
    }
}

/// One change: what, where (as a share of the length, or from the end, where most of a table's structure is), and with what.
fn change(bytes: &mut Vec<u8>, what: u8, at: u16, with: u16) {
    if bytes.is_empty() {
        return;
    }
    let length = bytes.len();
    let at = match what & 0x80 {
        0 => length - 1 - usize::from(at) % length,
        _ => usize::from(at) * length / 65_536,
    };
    let end = (at + usize::from(with)).min(length);
    match what % 6 {
        0 => bytes[at] ^= 1 << (with % 8),
        1 => bytes[at] = with.to_le_bytes()[0],
        2 => bytes.truncate(at),
        3 => drop(bytes.drain(at..end)),
        4 => drop(bytes.splice(at..at, bytes[at..end].to_vec())),
        _ => drop(bytes.splice(at..at, with.to_le_bytes())),
    }
}
