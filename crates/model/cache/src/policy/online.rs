//! Policies for a cache whose objects come and go: the number of an object that is neither stored nor remembered is given to another
//! object.

use super::EvictionPolicy;

/// Policy of a cache that serves requests as they come.
pub trait OnlinePolicy: EvictionPolicy + std::fmt::Debug {
    /// Extends the policy to objects numbered below `objects`.
    fn grow(&mut self, objects: usize);

    /// True for a ghost: an object that is not stored, but remembered.
    fn remembers(&self, object: u32) -> bool {
        let _ = object;
        false
    }

    /// Gives the number to an object whose key has this hash.
    fn rename(&mut self, object: u32, hash: u64) {
        let _ = (object, hash);
    }

    /// False if a new object of this size would itself be the next victim: then it is not stored.
    fn admits_size(&mut self, bytes: u64) -> bool {
        let _ = bytes;
        true
    }

    /// Memory of the policy for each object.
    fn bytes_per_object(&self) -> u64 {
        24
    }
}
