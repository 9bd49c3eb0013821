//! The document number by which policies recognise a requested target.

/// Hash of a request's target: all that content-aware policies know of it.
pub fn hash_target(target: &[u8]) -> u64 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut hash = target.len() as u64 ^ 0x5851_f42d_4c95_7f2d;
    let mut words = target.chunks_exact(8);
    for word in &mut words {
        // `chunks_exact` gives eight bytes each time.
        let word = word.try_into().map_or(0, u64::from_le_bytes);
        hash = (hash ^ word).wrapping_mul(ODD);
        hash ^= hash >> 29;
    }
    let mut last = [0; 8];
    let rest = words.remainder();
    last[..rest.len()].copy_from_slice(rest);
    hash = (hash ^ u64::from_le_bytes(last)).wrapping_mul(ODD);
    hash ^= hash >> 32;
    hash = hash.wrapping_mul(0xd6e8_feb8_6659_fd93);
    hash ^ (hash >> 32)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn targets_that_differ_in_one_place_have_other_numbers_in_every_quarter_of_the_range() {
        let all: Vec<u64> = (0..10_000).map(|n| hash_target(format!("/a/file{n}.html").as_bytes())).collect();
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
        for quarter in 0..4 {
            let count = all.iter().filter(|hash| **hash >> 62 == quarter).count();
            assert!((2300..2700).contains(&count), "{quarter}: {count}");
        }
        assert_eq!(hash_target(b"/a"), hash_target(b"/a"));
        assert_ne!(hash_target(b"/a"), hash_target(b"/a\0"));
    }
}
