//! The validity of a certificate: the one thing that is read of a certificate here and not by the library underneath.
//!
//! Elements of DER (X.690) are a tag, a length and contents. Those before the validity are passed over.

use crate::tls::authority::Validity;

const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// The validity of a certificate (RFC 5280, 4.1); none: this is no certificate.
pub fn validity(certificate: &[u8]) -> Option<Validity> {
    let (fields, _) = sequence(certificate)?;
    let (mut fields, _) = sequence(fields)?;
    if fields.first() == Some(&VERSION) {
        fields = element(fields)?.2;
    }
    // Serial number, signature algorithm, issuer.
    for _ in 0..3 {
        fields = element(fields)?.2;
    }
    let (times, _) = sequence(fields)?;
    let (from_unix_s, times) = time(times)?;
    let (until_unix_s, _) = time(times)?;
    Some(Validity { from_unix_s, until_unix_s })
}

/// The contents of a sequence, and what follows it.
fn sequence(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (tag, contents, rest) = element(bytes)?;
    (tag == SEQUENCE).then_some((contents, rest))
}

/// The tag and the contents of an element, and what follows it.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, bytes) = bytes.split_first()?;
    let (&first, bytes) = bytes.split_first()?;
    let (length, bytes) = match first {
        0..=0x7f => (usize::from(first), bytes),
        0x81..=0x83 => {
            let (digits, bytes) = bytes.split_at_checked(usize::from(first - 0x80))?;
            (digits.iter().fold(0, |length, &digit| length << 8 | usize::from(digit)), bytes)
        }
        _ => return None,
    };
    let (contents, rest) = bytes.split_at_checked(length)?;
    Some((tag, contents, rest))
}

/// A time in seconds of Unix time (0 where it is before), and what follows it.
fn time(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (tag, contents, rest) = element(bytes)?;
    let digits = contents.strip_suffix(b"Z")?;
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = |digits: &[u8]| digits.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0'));
    let (year, digits) = match (tag, digits.len()) {
        (UTC_TIME, 12) => {
            let (year, digits) = digits.split_at(2);
            // RFC 5280, 4.1.2.5.1.
            let year = number(year);
            (if year < 50 { 2000 + year } else { 1900 + year }, digits)
        }
        (GENERALIZED_TIME, 14) => {
            let (year, digits) = digits.split_at(4);
            (number(year), digits)
        }
        _ => return None,
    };
    let [month, day, hour, minute, second] = [0, 2, 4, 6, 8].map(|at| number(&digits[at..at + 2]));
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let in_day_s = hour * 3600 + minute * 60 + second;
    let unix_s = days(year, month, day).map_or(0, |days| days * 86_400 + in_day_s);
    Some((unix_s, rest))
}

/// Days from the beginning of Unix time to a date; none: it is before that.
fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    // The year begins in March here, so that the day that some years have more is its last.
    let year = if month > 2 { year } else { year.checked_sub(1)? };
    let month = (month + 9) % 12;
    let in_year = (153 * month + 2) / 5 + day - 1;
    // Days from the 1st of March of the year 0 to the 1st of January 1970.
    (year * 365 + year / 4 - year / 100 + year / 400 + in_year).checked_sub(719_468)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;

    use super::*;
    use crate::tls::authority::{Authority, KeyKind};

    fn made(validity: Validity) -> CertificateDer<'static> {
        let authority = Authority::new(KeyKind::P256, validity).expect("can be made");
        CertificateDer::from_pem_slice(authority.certificate.as_bytes()).expect("is one")
    }

    #[test]
    fn the_validity_of_a_certificate_is_that_with_which_it_was_made() {
        // The second one ends after 2049, which is written in another form; the third on the last day of a February.
        for (from_unix_s, until_unix_s) in [
            (0, 1_800_000_000),
            (1_700_000_000, 2_600_000_000),
            (951_782_399, 951_868_800),
            (4_107_542_399, 4_107_542_400),
        ] {
            let validity = Validity { from_unix_s, until_unix_s };
            assert_eq!(super::validity(&made(validity)), Some(validity));
        }
    }

    #[test]
    fn a_certificate_that_is_cut_off_or_changed_has_a_validity_or_none() {
        let whole = made(Validity { from_unix_s: 0, until_unix_s: 1 });
        for length in 0..whole.len() {
            let _ = validity(&whole[..length]);
            let mut changed = whole.to_vec();
            changed[length] ^= 0xff;
            let _ = validity(&changed);
        }
        assert_eq!(validity(b""), None);
    }

    proptest! {
        #[test]
        fn whatever_is_read_is_no_reason_to_stop(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = validity(&bytes);
        }
    }
}
