//! Files that come from others: those that users name (workloads, tables, settings, descriptions, documents), and what is in the
//! directories of results. Read as a whole, if they are regular files that are not too long, or opened as a stream.
//!
//! A device or a pipe may never end, and may block whoever opens it: `/dev/zero` in place of a settings file would be read until
//! no memory is left. Here, what is no regular file is refused before it is read, and reading ends at a limit, whatever length the
//! file is said to have. Errors are those of the system, with a text that says what was seen and what is allowed.
//!
//! *Does not:* read standard input without a limit, follow a file that grows, or know what is in a file.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

/// Most bytes of a file of settings: an experiment, a cluster, a description of a proxy, rules, a certificate.
pub const SETTINGS_MAX: u64 = 16 << 20;
/// Most bytes of a source of a workload: its text, what it includes, and its tables and traces.
pub const SOURCE_MAX: u64 = 256 << 20;
/// Most bytes of a document that Assay has written: `run.json`, a result.
pub const DOCUMENT_MAX: u64 = 256 << 20;
/// Most bytes of a file that bodies are made of, which every role has in memory, and of a file that an agent hands over.
pub const BODY_MAX: u64 = 4 << 30;

const NOT_TEXT: &str = "it is not text (UTF-8)";

/// The text (UTF-8) of a regular file of at most so many bytes.
pub fn text(path: &Path, most_bytes: u64) -> io::Result<String> {
    utf8(bytes(path, most_bytes)?)
}

/// Bytes as the text (UTF-8) that they must be.
pub fn utf8(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, NOT_TEXT))
}

/// Bytes of a text that somebody wrote, with U+FFFD for those that are no UTF-8: for texts in which some of it does not matter, such as
/// comments. What has a byte 0 is no text in any coding of single bytes.
pub fn lossy_text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).or_else(|error| match error.as_bytes().contains(&0) {
        true => Err(io::Error::new(io::ErrorKind::InvalidData, NOT_TEXT)),
        false => Ok(String::from_utf8_lossy(error.as_bytes()).into_owned()),
    })
}

/// The bytes of a regular file of at most so many.
pub fn bytes(path: &Path, most_bytes: u64) -> io::Result<Vec<u8>> {
    limited(open(path)?, most_bytes)
}

/// A regular file, to be read as a stream: one of which only a part is in memory at a time, however long it is.
pub fn open(path: &Path) -> io::Result<File> {
    // A pipe without a writer would block the opening.
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or(0);
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let kind = file.metadata()?.file_type();
    if !kind.is_file() {
        let is = match () {
            () if kind.is_dir() => "a directory",
            () if kind.is_fifo() => "a pipe",
            () if kind.is_char_device() || kind.is_block_device() => "a device",
            () => "something else",
        };
        let text = format!("it is {is}, and a regular file is needed");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    Ok(file)
}

/// All that comes from a reader, of at most so many bytes.
pub fn limited(from: impl Read, most_bytes: u64) -> io::Result<Vec<u8>> {
    let mut all = Vec::new();
    from.take(most_bytes.saturating_add(1)).read_to_end(&mut all)?;
    if all.len() as u64 > most_bytes {
        let text = format!("it is longer than the {} that are read at most", size(most_bytes));
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    Ok(all)
}

/// A number of bytes in words.
fn size(bytes: u64) -> String {
    match bytes >> 20 {
        0 => format!("{bytes} bytes"),
        mebibytes => format!("{mebibytes} MiB"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaint(path: &str, most_bytes: u64) -> String {
        text(Path::new(path), most_bytes).expect_err(path).to_string()
    }

    #[test]
    fn what_never_ends_is_refused_before_it_is_read() {
        for device in ["/dev/zero", "/dev/urandom", "/dev/full"] {
            assert_eq!(complaint(device, 10), "it is a device, and a regular file is needed");
        }
        assert!(complaint("/", 10).contains("a directory"));
        let folder = tempfile::tempdir().expect("a folder");
        let pipe = folder.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0)
            .expect("a folder of its own");
        assert!(complaint(&pipe.display().to_string(), 10).contains("a pipe"));
    }

    #[test]
    fn a_file_is_read_up_to_its_limit_and_no_further() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x");
        std::fs::write(&path, "0123456789").expect("a folder of its own");
        assert_eq!(text(&path, 10).expect("is short enough"), "0123456789");
        assert!(complaint(&path.display().to_string(), 9).contains("longer than the 9 bytes"));
        assert!(limited(io::repeat(0), 2 << 20).is_err_and(|error| error.to_string().contains("2 MiB")));
        assert_eq!(
            text(&folder.path().join("none"), 1).expect_err("is missing").kind(),
            io::ErrorKind::NotFound
        );
        std::fs::write(&path, b"\xff").expect("a folder of its own");
        assert!(complaint(&path.display().to_string(), 9).contains("UTF-8"));
    }

    #[test]
    fn what_is_no_text_is_replaced_where_that_is_allowed_unless_it_is_no_text_at_all() {
        assert_eq!(lossy_text(b"caf\xe9 \xc3\xa9".to_vec()).expect("is text"), "caf\u{fffd} \u{e9}");
        assert!(lossy_text(b"\x7fELF\x00\xff".to_vec()).is_err_and(|error| error.to_string() == NOT_TEXT));
    }

    #[test]
    fn a_file_that_is_longer_than_it_says_is_bounded_too() {
        // Files of the kernel have a length of zero.
        assert!(complaint("/proc/self/maps", 100).contains("longer than the 100 bytes"));
    }
}
