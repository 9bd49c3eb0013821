//! Leftovers of an Assay that was killed.

use crate::output;

/// Clears it away, and says so.
pub fn clear() {
    for note in assay_lab::cleanup::clear() {
        output::say(&format!("note: {note}"));
    }
}
