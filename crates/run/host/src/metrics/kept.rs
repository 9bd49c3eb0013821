//! A file of the kernel's that is read every second for little. It is opened once and read again from its beginning.
//!
//! A descriptor of `/proc/PID/…` also stays with its process: when that is gone, reading fails, whoever has its number then.

use std::borrow::Cow;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// What most files fit in.
const ROOM: usize = 16 << 10;

/// A file of the kernel's, held open.
#[derive(Debug)]
pub struct Kept(File);

/// Room that readings share.
#[derive(Debug)]
pub struct Room(Vec<u8>);

impl Default for Room {
    fn default() -> Self {
        Self(vec![0; ROOM])
    }
}

impl Room {
    /// For responses that do not come out of files.
    pub fn bytes(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

impl Kept {
    /// Opens it; none where that is not possible.
    pub fn open(path: impl AsRef<Path>) -> Option<Self> {
        File::open(path).ok().map(Self)
    }

    /// All of it, as it is now; none when there is nothing to read any more.
    pub fn read<'a>(&self, room: &'a mut Room) -> Option<Cow<'a, str>> {
        let room = &mut room.0;
        let mut length = 0;
        loop {
            if length == room.len() {
                room.resize(length * 2, 0);
            }
            match self.0.read_at(&mut room[length..], length as u64) {
                Ok(0) => break,
                Ok(read) => length += read,
                Err(_) => return None,
            }
        }
        // Names of programs may hold anything.
        Some(String::from_utf8_lossy(&room[..length]))
    }
}

/// What is held open, if it could be opened.
pub fn read<'a>(kept: Option<&Kept>, room: &'a mut Room) -> Option<Cow<'a, str>> {
    kept?.read(room)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_kept_file_is_read_anew_and_whole_each_time() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let kept = Kept::open(file.path()).unwrap();
        let mut room = Room::default();
        assert_eq!(kept.read(&mut room).unwrap(), "");
        let text = "x".repeat(3 * ROOM + 1);
        file.write_all(text.as_bytes()).unwrap();
        assert_eq!(kept.read(&mut room).unwrap(), text);
        assert_eq!(kept.read(&mut room).unwrap(), text);
        assert!(read(Kept::open("/proc/self/no such file").as_ref(), &mut room).is_none());
    }
}
