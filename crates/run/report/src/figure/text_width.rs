//! Widths of texts: the advance widths of DejaVu Sans, the widest of the families that a figure names, so what fits
//! here fits in Helvetica and Arial too.

/// Parts of an em that widths are given in.
const UNITS_PER_EM: f64 = 2048.0;
const FIRST: char = ' ';
/// Advance widths of the printable ASCII characters, from [`FIRST`] on.
#[rustfmt::skip]
const ASCII: [u16; 95] = [
    651, 821, 942, 1716, 1303, 1946, 1597, 563, 799, 799, 1024, 1716, 651, 739, 651, 690,
    1303, 1303, 1303, 1303, 1303, 1303, 1303, 1303, 1303, 1303, 690, 690, 1716, 1716, 1716, 1087,
    2048, 1401, 1405, 1430, 1577, 1294, 1178, 1587, 1540, 604, 604, 1343, 1141, 1767, 1532, 1612,
    1235, 1612, 1423, 1300, 1251, 1499, 1401, 2025, 1403, 1251, 1403, 799, 690, 799, 1716, 1024,
    1024, 1255, 1300, 1126, 1300, 1260, 721, 1300, 1298, 569, 569, 1186, 569, 1995, 1298, 1253,
    1300, 1300, 842, 1067, 803, 1298, 1212, 1675, 1212, 1212, 1075, 1303, 690, 1303, 1716,
];
/// The signs that charts use beside ASCII (`−`, `×`), and most of what else is not a letter.
const SIGN: u16 = 1716;

/// Width of a text, in points, at a size in points.
pub(super) fn text_width(text: &str, size: f64) -> f64 {
    let units: u64 = text.chars().map(|c| u64::from(advance(c))).sum();
    units as f64 * size / UNITS_PER_EM
}

fn advance(c: char) -> u16 {
    let index = u32::from(c).checked_sub(u32::from(FIRST)).and_then(|index| usize::try_from(index).ok());
    index.and_then(|index| ASCII.get(index)).copied().unwrap_or(SIGN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_as_wide_as_their_letters() {
        assert_eq!(text_width("", 7.0), 0.0);
        assert_eq!(text_width(" @~", 2048.0), 651.0 + 2048.0 + 1716.0);
        assert_eq!(text_width("−5", 2048.0), 1716.0 + 1303.0);
        assert!(text_width("iii", 7.0) < text_width("www", 7.0));
    }
}
