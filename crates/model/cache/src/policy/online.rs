//! What a policy must know to serve a cache whose objects come and go: the number of an object that is neither stored nor
//! remembered is given to another one.

use super::Order;

/// The order of a cache that serves requests as they come.
pub trait Online: Order + std::fmt::Debug {
    /// From now on objects have numbers below `objects`.
    fn grow(&mut self, objects: usize);

    /// True for an object that is not stored and of which the order still knows something.
    fn remembers(&self, object: u32) -> bool {
        let _ = object;
        false
    }

    /// The number stands for an object whose key has this hash.
    fn rename(&mut self, object: u32, hash: u64) {
        let _ = (object, hash);
    }

    /// False if a new object of so many bytes would go before the one that goes next: then it is not stored.
    fn makes_way_for(&mut self, bytes: u64) -> bool {
        let _ = bytes;
        true
    }

    /// Bytes that the order takes for each object.
    fn bytes_per_object(&self) -> u64 {
        24
    }
}
