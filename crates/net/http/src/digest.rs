//! Digests of bytes.
//!
//! MD5 and SHA-256, for `Content-MD5` (RFC 1864) and for Digest authentication. MD5 protects nobody from anything: it is
//! here because messages carry it.

use md5::{Digest as _, Md5};
use sha2::Sha256;

use crate::base64;

/// An MD5 that bytes are added to.
#[derive(Debug, Clone, Default)]
pub struct ContentMd5(Md5);

impl ContentMd5 {
    /// Of no bytes yet.
    pub fn new() -> Self {
        Self::default()
    }

    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub fn finish(self) -> [u8; 16] {
        self.0.finalize().into()
    }
}

/// Appends the value of a `Content-MD5` field.
pub fn write_content_md5(digest: &[u8; 16], out: &mut Vec<u8>) {
    base64::encode(digest, out);
}

/// Reads the value of a `Content-MD5` field.
pub fn parse_content_md5(value: &[u8]) -> Option<[u8; 16]> {
    base64::decode(value.trim_ascii())?.try_into().ok()
}

/// A digest in hexadecimal digits, for a text that may be made of several pieces.
pub(crate) fn hexadecimal_md5(pieces: &[&[u8]]) -> String {
    let mut digest = Md5::new();
    pieces.iter().for_each(|piece| digest.update(piece));
    hexadecimal(&digest.finalize())
}

/// The same with SHA-256.
pub fn hexadecimal_sha256(pieces: &[&[u8]]) -> String {
    let mut digest = Sha256::new();
    pieces.iter().for_each(|piece| digest.update(piece));
    hexadecimal(&digest.finalize())
}

fn hexadecimal(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes
        .iter()
        .flat_map(|b| [DIGITS[usize::from(b >> 4)], DIGITS[usize::from(b & 15)]])
        .map(char::from)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_the_standards() {
        assert_eq!(hexadecimal_md5(&[b"a", b"bc"]), "900150983cd24fb0d6963f7d28e17f72");
        let sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hexadecimal_sha256(&[b"ab", b"c"]), sha256);
    }

    #[test]
    fn a_content_md5_is_read_back() {
        let mut digest = ContentMd5::new();
        digest.update(b"Check ");
        digest.update(b"Integrity!");
        let digest = digest.finish();
        let mut text = Vec::new();
        write_content_md5(&digest, &mut text);
        assert_eq!(text.len(), 24);
        assert_eq!(parse_content_md5(&text), Some(digest));
        assert_eq!(parse_content_md5(b"Zg=="), None);
    }
}
