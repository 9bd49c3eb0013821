//! Checksums of the files of a run directory.
//!
//! `SHA256SUMS` has a line per file, in the form that `sha256sum --check` reads. A flipped bit in a column of numbers
//! is a wrong number that nobody would notice otherwise.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Read;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::dir::{RunDir, RunDirError};
use crate::table::FileError;

/// Digests by file name; empty where there is no `SHA256SUMS`.
#[derive(Debug, Default)]
pub(crate) struct Checksums(BTreeMap<String, String>);

impl Checksums {
    /// Reads `SHA256SUMS` of a directory; lines of another form are left out.
    pub(crate) fn read(dir: &RunDir) -> Result<Self, RunDirError> {
        let path = dir.checksums_path();
        let text = match assay_base::files::bytes(&path, assay_base::files::SETTINGS_MAX) {
            Ok(text) => text,
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(cause) => return Err(FileError::read(&path, cause).into()),
        };
        let text = String::from_utf8_lossy(&text);
        let lines = text.lines().filter_map(|line| line.split_once("  "));
        let sums = lines.filter(|(sum, _)| sum.len() == 64 && sum.bytes().all(|b| b.is_ascii_hexdigit()));
        Ok(Self(sums.map(|(sum, name)| (name.to_owned(), sum.to_owned())).collect()))
    }

    /// Whether the run wrote a file of that name.
    pub(crate) fn contains(&self, file: &str) -> bool {
        self.0.contains_key(file)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Verifies a file: an error if it differs from what the run wrote.
    pub(crate) fn check(&self, path: &Path) -> Result<(), RunDirError> {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        match self.0.get(&name) {
            Some(sum) if *sum != digest(path)? => {
                Err(FileError::damaged(path, "it is not what the run wrote (its checksum differs)").into())
            }
            _ => Ok(()),
        }
    }

    /// Adds a file that was just written.
    pub(crate) fn add(&mut self, path: &Path) -> Result<(), RunDirError> {
        if let Some(name) = path.file_name() {
            self.0.insert(name.to_string_lossy().into_owned(), digest(path)?);
        }
        Ok(())
    }

    /// Removes a file that is about to change.
    pub(crate) fn remove(&mut self, file: &str) {
        self.0.remove(file);
    }

    pub(crate) fn write(&self, dir: &RunDir) -> Result<(), RunDirError> {
        let mut text = String::new();
        for (name, sum) in &self.0 {
            text.push_str(&format!("{sum}  {name}\n"));
        }
        dir.write_whole(&dir.checksums_path(), text.as_bytes())
    }
}

fn digest(path: &Path) -> Result<String, RunDirError> {
    let mut file = assay_base::files::open(path).map_err(|cause| FileError::read(path, cause))?;
    let (mut hash, mut chunk) = (Sha256::new(), vec![0; 1 << 18]);
    loop {
        match file.read(&mut chunk).map_err(|cause| FileError::read(path, cause))? {
            0 => break,
            read => hash.update(&chunk[..read]),
        }
    }
    let mut text = String::new();
    for byte in hash.finalize() {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_of_a_long_file_is_of_all_its_bytes() {
        let tmp = tempfile::tempdir().unwrap();
        let path = tmp.path().join("long");
        // A test vector of FIPS 180-2; it is read in four pieces.
        std::fs::write(&path, vec![b'a'; 1_000_000]).unwrap();
        assert_eq!(
            digest(&path).unwrap(),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"
        );
    }
}
