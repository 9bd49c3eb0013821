//! A file, watched for changes.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A file, and how it was.
pub struct WatchedFile {
    file: PathBuf,
    seen: Option<(SystemTime, u64)>,
}

impl WatchedFile {
    /// As it is now.
    pub fn new(file: &Path) -> Self {
        Self { file: file.to_owned(), seen: look(file) }
    }

    /// Whether it is another one than at the last look. One that cannot be read now may be half written.
    pub fn has_changed(&mut self) -> bool {
        let now = look(&self.file);
        if now.is_none() || now == self.seen {
            return false;
        }
        self.seen = now;
        true
    }
}

fn look(file: &Path) -> Option<(SystemTime, u64)> {
    let about = std::fs::metadata(file).ok()?;
    Some((about.modified().ok()?, about.len()))
}
