//! Memory of a node: an LRU cache of documents.

use assay_cache::lru::Lru;

/// Memory that a document needs beside its own bytes, for the node's index.
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

    /// True if the document is in memory; counts as a use.
    pub(super) fn touch(&mut self, document: u64) -> bool {
        self.documents.get(&document).is_some()
    }

    /// Adds a document, and evicts others for it. One that is larger than the whole memory is not kept.
    pub(super) fn insert(&mut self, document: u64, bytes: u64) {
        let _ = self.documents.insert(document, (), bytes);
    }
}
