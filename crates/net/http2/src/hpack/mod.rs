//! HPACK, the compression of header fields (RFC 7541).
//!
//! A [`Decoder`] and an [`Encoder`] each keep a dynamic table in step with the peer's. Both are bounded: in the size of their
//! table, in the length of a block ([`MAX_BLOCK_BYTES`]), and in what a decoded section may come to, which is for the caller
//! to count: the decoder hands out fields one by one, borrowed from the table or from the block, and copies none.
//!
//! *Does not:* know what a field means in HTTP beyond its [`Kind`], which is found once for each entry of a table and not
//! once for each message.

mod decode;
mod encode;
pub mod huffman;
mod integer;
mod kind;
mod names;
mod strings;
mod table;

pub use self::decode::{Decoder, HeaderField, HpackError};
pub use self::encode::Encoder;
pub use self::kind::Kind;

/// Size of a dynamic table before anybody has said otherwise, in bytes by RFC 7541's measure.
pub const DEFAULT_TABLE_BYTES: u32 = 4096;
/// Size of each entry beyond its name and value (RFC 7541, 4.1; RFC 9113, 6.5.2).
pub const FIELD_OVERHEAD_BYTES: usize = 32;
/// Longest coded header block that is accepted, in bytes: HEADERS and all its CONTINUATION frames together.
pub const MAX_BLOCK_BYTES: usize = 64 * 1024;
