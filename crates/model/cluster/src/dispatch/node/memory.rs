//! The memory of a node: which documents are in it. What was used last stays, up to so many bytes.

use assay_cache::lru::Lru;

/// Memory that a document needs beside its own bytes: a node has to know where it is.
pub const DOCUMENT_OVERHEAD_BYTES: u64 = 128;

/// A node's memory of documents.
#[derive(Debug)]
pub(super) struct Memory {
    documents: Lru<u64, ()>,
}

impl Memory {
    pub(super) fn new(bytes: u64) -> Self {
        Self { documents: Lru::new(bytes).with_overhead(DOCUMENT_OVERHEAD_BYTES) }
    }

    /// True when it is there; it is used thereby.
    pub(super) fn has(&mut self, document: u64) -> bool {
        self.documents.get(&document).is_some()
    }

    /// Keeps it, and drops others for it. What is larger than the whole memory is not kept.
    pub(super) fn keep(&mut self, document: u64, bytes: u64) {
        let _ = self.documents.insert(document, (), bytes);
    }
}
