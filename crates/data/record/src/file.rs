//! Documents beside the tables: read as JSON, and written so that a reader sees the old one or the new one, never a part.

use std::path::Path;

use crate::table::{FileError, partial_path};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Reads a JSON document.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, FileError> {
    let text = assay_base::files::bytes(path, assay_base::files::DOCUMENT_MAX)
        .map_err(|cause| FileError::read(path, cause))?;
    serde_json::from_slice(&text).map_err(|error| FileError::damaged(path, error.to_string()))
}

/// Writes a JSON document with line ends, whole.
pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), FileError> {
    let mut text = serde_json::to_vec_pretty(value).map_err(|error| FileError::write(path, error.into()))?;
    text.push(b'\n');
    write_whole(path, &text)
}

/// Writes a file under a temporary name and renames it.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let partial = partial_path(path);
    std::fs::write(&partial, bytes).map_err(|cause| FileError::write(&partial, cause))?;
    std::fs::rename(&partial, path).map_err(|cause| FileError::write(path, cause))
}
