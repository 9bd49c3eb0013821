//! Files of `/proc` that are opened once and read from the start each time, which is cheaper than opening them again.
//!
//! A descriptor of `/proc/PID/…` stays bound to its process: after its end, reading fails, even if the id is reused.

use std::borrow::Cow;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Initial size of a buffer, which holds most files.
const INITIAL_BYTES: usize = 16 << 10;

#[derive(Debug)]
pub struct ProcFile(File);

/// A buffer that readings share.
#[derive(Debug)]
pub struct ReadBuffer(Vec<u8>);

impl Default for ReadBuffer {
    fn default() -> Self {
        Self(vec![0; INITIAL_BYTES])
    }
}

impl ReadBuffer {
    /// The bytes, for responses that are not read from files.
    pub fn bytes(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

impl ProcFile {
    pub fn open(path: impl AsRef<Path>) -> Option<Self> {
        File::open(path).ok().map(Self)
    }

    /// The current content; none if reading fails, as after the end of a process.
    pub fn read<'a>(&self, buffer: &'a mut ReadBuffer) -> Option<Cow<'a, str>> {
        let buffer = &mut buffer.0;
        let mut length = 0;
        loop {
            if length == buffer.len() {
                buffer.resize(length * 2, 0);
            }
            match self.0.read_at(&mut buffer[length..], length as u64) {
                Ok(0) => break,
                Ok(read) => length += read,
                Err(_) => return None,
            }
        }
        // Names of programs need not be UTF-8.
        Some(String::from_utf8_lossy(&buffer[..length]))
    }
}

/// Reads a file, if it could be opened.
pub fn read<'a>(file: Option<&ProcFile>, buffer: &'a mut ReadBuffer) -> Option<Cow<'a, str>> {
    file?.read(buffer)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_file_is_read_anew_and_whole_each_time() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let proc_file = ProcFile::open(file.path()).unwrap();
        let mut buffer = ReadBuffer::default();
        assert_eq!(proc_file.read(&mut buffer).unwrap(), "");
        let text = "x".repeat(3 * INITIAL_BYTES + 1);
        file.write_all(text.as_bytes()).unwrap();
        assert_eq!(proc_file.read(&mut buffer).unwrap(), text);
        assert_eq!(proc_file.read(&mut buffer).unwrap(), text);
        assert!(read(ProcFile::open("/proc/self/no such file").as_ref(), &mut buffer).is_none());
    }
}
