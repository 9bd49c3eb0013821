//! The bytes that an object consists of. A stamp that names it, then slices of static bytes, and on top of them what must
//! stand at its place: the links of a page, injected lines. Nothing is generated for plain bodies, and checking one is a
//! `memcmp`.

mod make;
mod overlay;
mod pool;
mod table;

use std::sync::Arc;

use self::overlay::{Overlay, OverlayLookup};
use self::pool::{CircleIndex, DATA};
pub use self::pool::{FileBytes, LONGEST_CHUNK, POOL_BYTES, Pool};
pub(crate) use self::table::{BodyTable, extension, pool_needs};
use crate::Purpose;
use assay_base::random::{Rng, hash};

/// Length of the stamp at the start of every body that is not made of files.
pub const STAMP_BYTES: usize = 16;

/// The bytes of one version of one object: cheap to make, cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body {
    stamp: [u8; STAMP_BYTES],
    /// Bytes of the stamp: all or none.
    stamp_bytes: u32,
    circle: CircleIndex,
    /// Start of the body in the circle.
    offset: u64,
    size: u64,
    overlay: Option<Arc<Overlay>>,
}

impl Body {
    /// The body of a version of the object with this key, of a type without anything special.
    #[inline]
    pub fn new(key: u64, version: u64, size: u64) -> Self {
        Self::of_circle(key, version, size, DATA)
    }

    /// The same cut from one of the circles that are as long as a pool. The stamp of what is no data is text
    /// as well.
    #[inline]
    fn of_circle(key: u64, version: u64, size: u64, circle: CircleIndex) -> Self {
        let mut stamp = [0; STAMP_BYTES];
        let mut rng = Rng::of(Purpose::Stamp, &[key, version]);
        stamp[..8].copy_from_slice(&rng.next_u64().to_le_bytes());
        stamp[8..].copy_from_slice(&rng.next_u64().to_le_bytes());
        if circle != DATA {
            // Capital letters and some signs, none of which markup is made of.
            for byte in &mut stamp {
                *byte = b'@' + (*byte & 31);
            }
        }
        let offset = hash(Purpose::BodyOffset, &[key, version]) % POOL_BYTES as u64;
        Self { stamp, stamp_bytes: STAMP_BYTES as u32, circle, offset, size, overlay: None }
    }

    pub fn size(&self) -> u64 {
        self.size
    }

    /// The bytes from position `from` on, as many as can be had without copying: at most `max` and at most
    /// [`LONGEST_CHUNK`], less at the end of the stamp and around what is put into the body. Empty only at
    /// the end of the body (or when `max` is 0).
    #[inline]
    pub fn chunk<'a>(&'a self, pool: &'a Pool, from: u64, max: usize) -> &'a [u8] {
        let left = self.size.saturating_sub(from);
        let max = max.min(LONGEST_CHUNK).min(usize::try_from(left).unwrap_or(LONGEST_CHUNK));
        match &self.overlay {
            None => self.base(pool, from, max),
            Some(overlay) => self.overlaid(overlay, pool, from, max),
        }
    }

    #[inline]
    fn base<'a>(&'a self, pool: &'a Pool, from: u64, max: usize) -> &'a [u8] {
        let stamp_bytes = u64::from(self.stamp_bytes);
        if from < stamp_bytes {
            let (from, to) = (from as usize, STAMP_BYTES.min(from as usize + max));
            return &self.stamp[from..to];
        }
        pool.slice(self.circle, self.offset + (from - stamp_bytes), max)
    }

    #[cold]
    fn overlaid<'a>(&'a self, overlay: &'a Overlay, pool: &'a Pool, from: u64, max: usize) -> &'a [u8] {
        match overlay.at(pool, from, max) {
            OverlayLookup::Overlay(bytes) => bytes,
            OverlayLookup::Body(room) => self.base(pool, from, max.min(usize::try_from(room).unwrap_or(max))),
        }
    }

    /// Compares bytes that were received at position `from`; gives the position of the first byte that is
    /// wrong. Bytes beyond the end are wrong from the end on.
    #[inline]
    pub fn matches(&self, pool: &Pool, from: u64, bytes: &[u8]) -> Result<(), u64> {
        let (mut at, mut left) = (from, bytes);
        while !left.is_empty() {
            let want = self.chunk(pool, at, left.len());
            let (have, rest) = left.split_at(want.len());
            if want.is_empty() {
                return Err(at.min(self.size));
            }
            if want != have {
                let same = want.iter().zip(have).take_while(|(w, h)| w == h).count();
                return Err(at + same as u64);
            }
            at += want.len() as u64;
            left = rest;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::OnceLock;

    fn pool() -> &'static Pool {
        static POOL: OnceLock<Pool> = OnceLock::new();
        POOL.get_or_init(|| Pool::new(1))
    }

    fn whole(body: &Body, max: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        loop {
            let chunk = body.chunk(pool(), bytes.len() as u64, max);
            if chunk.is_empty() {
                return bytes;
            }
            bytes.extend_from_slice(chunk);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_body_is_the_same_however_it_is_cut(key: u64, version: u64, size in 0u64..600_000, max in 1usize..200_000) {
            let body = Body::new(key, version, size);
            let bytes = whole(&body, max);
            prop_assert_eq!(bytes.len() as u64, size);
            prop_assert!(bytes == whole(&body, usize::MAX));
            for cut in bytes.chunks(max).scan(0, |at, c| { let from = *at; *at += c.len() as u64; Some((from, c)) }) {
                prop_assert_eq!(body.matches(pool(), cut.0, cut.1), Ok(()));
            }
        }

        #[test]
        fn every_wrong_byte_is_found_where_it_is(key: u64, size in 1u64..300_000, at: u64, flip in 1u8..=255) {
            let body = Body::new(key, 0, size);
            let mut bytes = whole(&body, usize::MAX);
            let at = at % size;
            bytes[at as usize] ^= flip;
            prop_assert_eq!(body.matches(pool(), 0, &bytes), Err(at));
        }
    }

    #[test]
    fn bytes_beyond_the_end_are_wrong() {
        let body = Body::new(1, 0, 20);
        let mut bytes = whole(&body, usize::MAX);
        bytes.push(0);
        assert_eq!(body.matches(pool(), 0, &bytes), Err(20));
        assert_eq!(body.matches(pool(), 30, b"x"), Err(20));
    }

    #[test]
    fn versions_and_objects_differ_in_their_first_bytes() {
        let start = |key, version| whole(&Body::new(key, version, 8), 8);
        assert_ne!(start(1, 0), start(1, 1));
        assert_ne!(start(1, 0), start(2, 0));
        assert_eq!(start(1, 0), whole(&Body::new(1, 0, 100), usize::MAX)[..8]);
    }
}
