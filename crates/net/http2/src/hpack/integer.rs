//! Integers with a prefix of a few bits (RFC 7541, 5.1).

/// Most bytes behind the prefix: what they hold fits in 32 bits, and nothing in HTTP needs more.
const MAX_CONTINUATION: u32 = 5;

/// Reads an integer whose first byte is `first`, of which the low `prefix_bits` count, and whose other bytes begin at `at`:
/// its value and where the next byte lies; none when it is incomplete or over 32 bits.
#[inline]
pub(super) fn read(first: u8, prefix_bits: u32, block: &[u8], at: usize) -> Option<(u32, usize)> {
    let most = (1u32 << prefix_bits) - 1;
    let value = u32::from(first) & most;
    if value < most { Some((value, at)) } else { read_long(value, block, at) }
}

fn read_long(prefix: u32, block: &[u8], mut at: usize) -> Option<(u32, usize)> {
    let mut value = u64::from(prefix);
    for position in 0..MAX_CONTINUATION {
        let byte = *block.get(at)?;
        at += 1;
        value += u64::from(byte & 0x7f) << (7 * position);
        if byte & 0x80 == 0 {
            return Some((u32::try_from(value).ok()?, at));
        }
    }
    None
}

/// Appends an integer; `first` holds the bits above the prefix.
#[inline]
pub(super) fn write(out: &mut Vec<u8>, first: u8, prefix_bits: u32, value: usize) {
    let most = (1usize << prefix_bits) - 1;
    if value < most {
        return out.push(first | value as u8);
    }
    out.push(first | most as u8);
    let mut rest = value - most;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_examples_of_the_rfc_are_written_as_it_writes_them() {
        // RFC 7541, C.1: 10 and 1337 in five bits, 42 in eight.
        for (prefix_bits, value, expected) in
            [(5, 10, &[0x0a][..]), (5, 1337, &[0x1f, 0x9a, 0x0a]), (8, 42, &[0x2a])]
        {
            let mut out = Vec::new();
            write(&mut out, 0, prefix_bits, value);
            assert_eq!(out, expected);
        }
    }

    #[test]
    fn an_integer_that_does_not_end_or_does_not_fit_is_refused() {
        assert_eq!(read(0x1f, 5, &[], 0), None);
        assert_eq!(read(0x1f, 5, &[0x80, 0x80], 0), None);
        assert_eq!(read(0x1f, 5, &[0xff, 0xff, 0xff, 0xff, 0x7f], 0), None, "over 32 bits");
        assert_eq!(read(0x1f, 5, &[0x80, 0x80, 0x80, 0x80, 0x80, 0x00], 0), None, "six bytes of nothing");
    }

    proptest! {
        #[test]
        fn an_integer_that_is_written_is_read_back(value in any::<u32>(), prefix_bits in 1u32..=8) {
            let mut out = Vec::new();
            write(&mut out, 0, prefix_bits, value as usize);
            prop_assert_eq!(read(out[0], prefix_bits, &out, 1), Some((value, out.len())));
        }
    }
}
