//! Bytes of objects.
//!
//! A pool of bytes that look random, read in a circle from a place that the object's key decides. Nothing is stored for
//! an object, and both ends know what it must be.

/// Bytes of the pool.
const POOL_BYTES: usize = 64 * 1024;

pub(crate) struct ObjectBytes(Box<[u8]>);

impl std::fmt::Debug for ObjectBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Content")
    }
}

impl Default for ObjectBytes {
    fn default() -> Self {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut pool = Vec::with_capacity(POOL_BYTES);
        while pool.len() < POOL_BYTES {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            pool.extend_from_slice(&state.to_le_bytes());
        }
        Self(pool.into_boxed_slice())
    }
}

impl ObjectBytes {
    /// Some bytes of the object from byte `at` on.
    pub fn from(&self, key: u64, at: u64) -> &[u8] {
        let start = (key ^ (key >> 32)).wrapping_add(at) % POOL_BYTES as u64;
        &self.0[start as usize..]
    }

    /// True when the object has these bytes from `at` on.
    pub fn is(&self, key: u64, mut at: u64, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            let there = self.from(key, at);
            let count = there.len().min(bytes.len());
            if there[..count] != bytes[..count] {
                return false;
            }
            at += count as u64;
            bytes = &bytes[count..];
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_itself_from_any_byte_on_and_no_other_one() {
        let content = ObjectBytes::default();
        let mut whole = Vec::new();
        while whole.len() < 200_000 {
            whole.extend_from_slice(content.from(77, whole.len() as u64));
        }
        for at in [0, 1, 65_535, 65_536, 150_000] {
            assert!(content.is(77, at as u64, &whole[at..]), "{at}");
        }
        assert!(!content.is(78, 0, &whole) && !content.is(77, 1, &whole));
        whole[190_000] ^= 1;
        assert!(!content.is(77, 0, &whole));
    }
}
