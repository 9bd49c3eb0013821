//! Reading what is in the object store of a run.
//!
//! Whoever may write there decides what it is: an object can be longer than it claims, or lack a part, which is then waited for without
//! end. So both are bounded for whoever reads.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::timeout;

/// Time for which the next part of an object is waited for.
pub const QUIET: Duration = Duration::from_secs(10);
/// Bytes that are read at once, at most.
const PART_BYTES: usize = 128 * 1024;

/// An object that cannot be copied. The cause is the message, and so no `source` of the error.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    #[error("a part of it is missing: nothing came for {quiet:?}")]
    MissingPart { quiet: Duration },
    #[error("it has more than {most_bytes} bytes, and these are the most")]
    TooLong { most_bytes: u64 },
    #[error("{0}")]
    Io(io::Error),
}

/// Copies an object, of so many bytes at most, each part of which comes within so long. What went wrong, if something did.
pub async fn copy(
    object: &mut (impl AsyncRead + Unpin),
    to: &mut impl io::Write,
    most_bytes: u64,
    quiet: Duration,
) -> Result<(), CopyError> {
    let (mut part, mut copied) = (vec![0; PART_BYTES], 0);
    loop {
        let read = timeout(quiet, object.read(&mut part)).await;
        let read = read.map_err(|_| CopyError::MissingPart { quiet })?;
        let bytes = read.map_err(CopyError::Io)?;
        if bytes == 0 {
            return Ok(());
        }
        copied += bytes as u64;
        if copied > most_bytes {
            return Err(CopyError::TooLong { most_bytes });
        }
        to.write_all(&part[..bytes]).map_err(CopyError::Io)?;
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;

    use super::*;

    /// What became of an object of so many bytes, which is whole or lacks its end.
    fn copied(bytes: usize, is_whole: bool, most_bytes: u64) -> Result<usize, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (mut object, mut store) = tokio::io::duplex(1 << 20);
            store.write_all(&vec![7; bytes]).await.unwrap();
            let _kept = (!is_whole).then_some(store);
            let mut to = Vec::new();
            copy(&mut object, &mut to, most_bytes, Duration::from_millis(50))
                .await
                .map(|()| to.len())
                .map_err(|e| e.to_string())
        })
    }

    #[test]
    fn an_object_is_read_to_its_end() {
        assert_eq!(copied(300_000, true, 300_000), Ok(300_000));
        assert_eq!(copied(0, true, 0), Ok(0));
    }

    #[test]
    fn one_that_lacks_its_end_or_is_longer_than_it_may_be_is_not_waited_for() {
        assert!(copied(300_000, false, 1 << 20).unwrap_err().contains("nothing came for 50ms"));
        assert!(copied(300_000, true, 299_999).unwrap_err().contains("more than 299999 bytes"));
        // Nor for its end, if it is too long anyway.
        assert!(copied(300_000, false, 100).unwrap_err().contains("more than 100 bytes"));
    }
}
