//! The chunked coding of bodies.
//!
//! The decoder keeps a few words of state and no bytes: payload is handed out as slices of the input, so a body can
//! arrive in pieces of any size. Extensions and trailers are checked and dropped (RFC 9112, 7.1).

use thiserror::Error;

use crate::field::is_token_byte;

/// Longest line of a chunk size with its extensions, in bytes.
const MAX_SIZE_LINE: u32 = 4096;
/// Bytes of size lines that are allowed beyond one for each byte of payload and a few for each chunk: nobody needs more, and
/// whoever sends more wants the work and not the body.
const MAX_EXCESS: u32 = 16 * 1024;
/// Bytes of a size line that every chunk may have.
const USUAL_SIZE_LINE: u64 = 32;
/// Most bytes of trailers.
const MAX_TRAILERS: u32 = 16 * 1024;

/// The end of a chunked body without trailers.
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";
/// End of the data of each chunk.
pub const CHUNK_END: &[u8] = b"\r\n";
/// Room for the longest [`chunk_head`].
pub const CHUNK_HEAD_BYTES: usize = 18;

/// Malformed chunked coding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ChunkError {
    /// A chunk size that is not a hexadecimal number.
    #[error("a chunk size is not a hexadecimal number")]
    BadSize,
    /// A chunk size over 2^64 − 1.
    #[error("a chunk size does not fit in 64 bits")]
    SizeOverflow,
    /// An extension that is neither a name nor a name with a value (RFC 9112, 7.1.1).
    #[error("a chunk extension is neither a name nor a name with a value")]
    BadExtension,
    /// A size line or the trailers are too long, or hold a control character.
    #[error("a chunk extension or the trailers are too long or hold a control character")]
    BadLine,
    /// A trailer that is no field.
    #[error("a trailer is not a field")]
    BadTrailer,
    /// CR LF is missing where it must be.
    #[error("a line of the chunked coding does not end with CR LF")]
    BadLineEnd,
}

/// Result of [`Decoder::next`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'i> {
    /// Data of a chunk; never empty.
    Data(&'i [u8]),
    /// All input is used up and the body goes on.
    NeedMore,
    /// The body is complete. What is left of the input is not part of it.
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the first digit of a size.
    SizeStart,
    Size,
    /// Within white space behind the digits.
    SizeSpace,
    Extension(Extension),
    /// CR of the size line seen.
    SizeLf,
    Data,
    /// Payload over, CR expected.
    DataCr,
    /// After the CR of the line end behind data.
    DataLf,
    /// At the start of a trailer line.
    TrailerStart,
    /// Within the name of a trailer.
    TrailerName,
    Trailer,
    /// CR of a trailer line seen.
    TrailerLf,
    /// CR of the empty line seen.
    EndLf,
    End,
}

/// A part of `*( BWS ";" BWS name [ BWS "=" BWS value ] )` (RFC 9112, 7.1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extension {
    NameStart,
    Name,
    /// White space behind a name.
    NameSpace,
    ValueStart,
    /// A value that is a token.
    Value,
    /// A value that is a quoted string.
    Quoted,
    /// Behind a backslash in a quoted string.
    QuotedPair,
    /// Behind a quoted string.
    QuotedEnd,
    /// White space behind a value.
    ValueSpace,
}

impl Extension {
    /// The part that the next byte is in.
    fn after(self, byte: u8) -> Result<Self, ChunkError> {
        let is_space = matches!(byte, b' ' | b'\t');
        Ok(match self {
            Self::NameStart | Self::ValueStart | Self::NameSpace | Self::ValueSpace if is_space => self,
            Self::Name if is_space => Self::NameSpace,
            Self::Value | Self::QuotedEnd if is_space => Self::ValueSpace,
            Self::NameStart | Self::Name if is_token_byte(byte) => Self::Name,
            Self::ValueStart | Self::Value if is_token_byte(byte) => Self::Value,
            Self::Name | Self::NameSpace if byte == b'=' => Self::ValueStart,
            Self::ValueStart if byte == b'"' => Self::Quoted,
            Self::Quoted if byte == b'"' => Self::QuotedEnd,
            Self::Quoted if byte == b'\\' => Self::QuotedPair,
            Self::Quoted | Self::QuotedPair => Self::Quoted,
            Self::Name | Self::NameSpace | Self::Value | Self::QuotedEnd | Self::ValueSpace
                if byte == b';' =>
            {
                Self::NameStart
            }
            _ => return Err(ChunkError::BadExtension),
        })
    }
}

/// Takes a chunked body apart.
#[derive(Debug, Clone)]
pub struct Decoder {
    state: State,
    /// Payload bytes that are left of this chunk; the size while it is read.
    left: u64,
    /// Bytes of the current size line, or of all trailers.
    line: u32,
    /// Bytes of size lines so far, beyond what is usual.
    excess: u32,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Decoder {
    /// At the start of a body.
    pub fn new() -> Self {
        Self { state: State::SizeStart, left: 0, line: 0, excess: 0 }
    }

    /// True once the whole body was read.
    pub fn is_done(&self) -> bool {
        self.state == State::End
    }

    /// Reads on: the next piece, and how many bytes of `input` are done with (a `Data` piece lies at their end).
    ///
    /// Call again with the rest of the input until it says `NeedMore` or `End`.
    pub fn next<'i>(&mut self, input: &'i [u8]) -> Result<(Piece<'i>, usize), ChunkError> {
        let mut at = 0;
        while at < input.len() && self.state != State::End {
            if self.state == State::Data {
                let take = usize::try_from(self.left).unwrap_or(usize::MAX).min(input.len() - at);
                self.left -= take as u64;
                if self.left == 0 {
                    self.state = State::DataCr;
                }
                return Ok((Piece::Data(&input[at..at + take]), at + take));
            }
            self.state = self.step(input[at])?;
            at += 1;
        }
        let piece = if self.state == State::End { Piece::End } else { Piece::NeedMore };
        Ok((piece, at))
    }

    /// One byte of framing.
    fn step(&mut self, byte: u8) -> Result<State, ChunkError> {
        match self.state {
            State::SizeStart => {
                (self.left, self.line) = (0, 0);
                self.digit(byte)
            }
            State::Size if byte.is_ascii_hexdigit() => self.digit(byte),
            // Two numbers with white space between them are not one number: who reads on reads another size.
            State::Size | State::SizeSpace => match byte {
                b'\r' => Ok(State::SizeLf),
                b' ' | b'\t' => self.text(byte, MAX_SIZE_LINE, State::SizeSpace),
                b';' => self.text(byte, MAX_SIZE_LINE, State::Extension(Extension::NameStart)),
                _ => Err(ChunkError::BadSize),
            },
            State::Extension(Extension::Name | Extension::Value | Extension::QuotedEnd) if byte == b'\r' => {
                Ok(State::SizeLf)
            }
            State::Extension(part) => self.text(byte, MAX_SIZE_LINE, State::Extension(part.after(byte)?)),
            State::SizeLf if self.left == 0 => {
                self.line = 0;
                line_feed(byte, State::TrailerStart)
            }
            State::SizeLf => {
                let usual = u32::try_from(self.left.saturating_add(USUAL_SIZE_LINE)).unwrap_or(u32::MAX);
                self.excess = (self.excess + self.line).saturating_sub(usual);
                if self.excess > MAX_EXCESS {
                    return Err(ChunkError::BadLine);
                }
                line_feed(byte, State::Data)
            }
            State::DataCr if byte == b'\r' => Ok(State::DataLf),
            State::DataCr => Err(ChunkError::BadLineEnd),
            State::DataLf => line_feed(byte, State::SizeStart),
            State::TrailerStart if byte == b'\r' => Ok(State::EndLf),
            State::TrailerName if byte == b':' => self.text(byte, MAX_TRAILERS, State::Trailer),
            State::TrailerStart | State::TrailerName if is_token_byte(byte) => {
                self.text(byte, MAX_TRAILERS, State::TrailerName)
            }
            State::TrailerStart | State::TrailerName => Err(ChunkError::BadTrailer),
            State::Trailer if byte == b'\r' => Ok(State::TrailerLf),
            State::Trailer => self.text(byte, MAX_TRAILERS, State::Trailer),
            State::TrailerLf => line_feed(byte, State::TrailerStart),
            State::EndLf => line_feed(byte, State::End),
            // `next` handles both before it comes here.
            State::Data | State::End => Ok(self.state),
        }
    }

    fn digit(&mut self, byte: u8) -> Result<State, ChunkError> {
        let digit = (byte as char).to_digit(16).ok_or(ChunkError::BadSize)?;
        // Leading zeros are allowed, but not without end.
        self.line += 1;
        if self.left >> 60 != 0 || self.line > MAX_SIZE_LINE {
            return Err(ChunkError::SizeOverflow);
        }
        self.left = (self.left << 4) | u64::from(digit);
        Ok(State::Size)
    }

    fn text(&mut self, byte: u8, limit: u32, then: State) -> Result<State, ChunkError> {
        self.line += 1;
        if self.line > limit || (byte.is_ascii_control() && byte != b'\t') {
            return Err(ChunkError::BadLine);
        }
        Ok(then)
    }
}

fn line_feed(byte: u8, then: State) -> Result<State, ChunkError> {
    if byte == b'\n' { Ok(then) } else { Err(ChunkError::BadLineEnd) }
}

/// Writes what stands before a chunk of `length` bytes (not 0: that would end the body); returns what to send.
pub fn chunk_head(length: u64, room: &mut [u8; CHUNK_HEAD_BYTES]) -> &[u8] {
    let digits = (64 - length.leading_zeros()).div_ceil(4).max(1) as usize;
    for (at, slot) in room[..digits].iter_mut().enumerate() {
        let nibble = (length >> (4 * (digits - 1 - at))) & 0xf;
        *slot = b"0123456789abcdef"[nibble as usize];
    }
    room[digits..digits + 2].copy_from_slice(CHUNK_END);
    &room[..digits + 2]
}

/// Appends a chunk of `data`; nothing where there is none, as that would end the body.
pub fn append_chunk(out: &mut Vec<u8>, data: &[u8]) {
    if !data.is_empty() {
        out.extend_from_slice(chunk_head(data.len() as u64, &mut [0; CHUNK_HEAD_BYTES]));
        out.extend_from_slice(data);
        out.extend_from_slice(CHUNK_END);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Feeds a body in pieces that end at `cuts`; payload and number of bytes used.
    fn decode(body: &[u8], cuts: &[usize]) -> Result<(Vec<u8>, usize, bool), ChunkError> {
        let mut ends: Vec<usize> = cuts.iter().map(|c| c % (body.len() + 1)).collect();
        ends.push(body.len());
        ends.sort_unstable();
        let (mut decoder, mut payload, mut used) = (Decoder::new(), Vec::new(), 0);
        for end in ends {
            while used < end && !decoder.is_done() {
                let (piece, taken) = decoder.next(&body[used..end])?;
                used += taken;
                if let Piece::Data(data) = piece {
                    payload.extend_from_slice(data);
                }
            }
        }
        Ok((payload, used, decoder.is_done()))
    }

    fn encode(chunks: &[Vec<u8>]) -> Vec<u8> {
        let mut out = Vec::new();
        chunks.iter().for_each(|chunk| append_chunk(&mut out, chunk));
        out.extend_from_slice(LAST_CHUNK);
        out
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_payload(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..8),
            cuts in prop::collection::vec(any::<usize>(), 0..20),
        ) {
            let mut body = encode(&chunks);
            let length = body.len();
            body.extend_from_slice(b"next message");
            let (payload, used, done) = decode(&body, &cuts).unwrap();
            prop_assert_eq!(payload, chunks.concat());
            prop_assert_eq!(used, length);
            prop_assert!(done);
        }

        #[test]
        fn any_bytes_give_a_result_that_does_not_depend_on_the_split(
            body in prop::collection::vec(prop::sample::select(&b"0123aF;= \t\r\n\r\nxyz\x00"[..]), 0..60),
            cuts in prop::collection::vec(any::<usize>(), 0..20),
        ) {
            prop_assert_eq!(decode(&body, &cuts), decode(&body, &[]));
        }
    }

    #[test]
    fn extensions_and_trailers_are_passed_over() {
        let body = b"3;a=\"b c\" ;d\r\nabc\r\n002 \r\nde\r\n0;x\r\nTrailer: 1\r\nOther:2\r\n\r\n";
        assert_eq!(decode(body, &[]), Ok((b"abcde".to_vec(), body.len(), true)));
    }

    #[test]
    fn extensions_are_names_with_or_without_values() {
        let read = |extension: &[u8]| {
            decode(&[b"1", extension, b"\r\nx\r\n0\r\n\r\n"].concat(), &[]).map(|found| found.0)
        };
        for extension in [
            &b";a"[..],
            b";a=b",
            b";a;b=c;d",
            b"\t;\ta\t=\tb",
            b" ; a = \"b\" ; c",
            b";a=\"\"",
            b";a=\"x;y=z,\"",
            b";a=\"\\\"\"",
            b";a=\"\\\\\"",
            b";a=\"\xc3\xa4\"",
            b";a=\"b\tc\"",
            b";!#$%&'*+-.^_`|~0=1",
        ] {
            assert_eq!(read(extension), Ok(b"x".to_vec()), "{:?}", extension.escape_ascii().to_string());
        }
        for extension in [
            &b";"[..],
            b"; ",
            b";;",
            b";a;",
            b";a=b;",
            b";=x",
            b";a=",
            b";a= ",
            b";a==b",
            b";a=b=c",
            b";a b",
            b";a=b c",
            b";a=\"b\"c",
            b";a=\"b\"\"c\"",
            b";a=b\"c\"",
            b";bad[=x",
            b";a=[",
            b";a,b",
            b";\"a\"",
            b";\xc3\xa4=1",
            b";a=\xc3\xa4",
            b";a=\"b",
            b";a=\"\\\"",
            b";a ",
            b";a=b ",
        ] {
            assert!(read(extension).is_err(), "{:?}", extension.escape_ascii().to_string());
        }
    }

    #[test]
    fn sloppy_framing_is_refused() {
        for (body, error) in [
            (&b"x\r\n"[..], ChunkError::BadSize),
            (b"\r\n", ChunkError::BadSize),
            (b"-1\r\n", ChunkError::BadSize),
            (b"0x1\r\n", ChunkError::BadSize),
            (b"1\nz", ChunkError::BadSize),
            (b"1;\nz", ChunkError::BadExtension),
            (b"1;a=\"\nz", ChunkError::BadLine),
            (b"1 1\r\n", ChunkError::BadSize),
            (b"1 z\r\n", ChunkError::BadSize),
            (b"0\r\nA\r\n", ChunkError::BadTrailer),
            (b"0\r\n A: b\r\n", ChunkError::BadTrailer),
            (b"0\r\n: b\r\n", ChunkError::BadTrailer),
            (b"0\r\nA : b\r\n", ChunkError::BadTrailer),
            (b"1\rz", ChunkError::BadLineEnd),
            (b"1\r\nzz\r\n", ChunkError::BadLineEnd),
            (b"1\r\nz\n", ChunkError::BadLineEnd),
            (b"10000000000000000\r\n", ChunkError::SizeOverflow),
            (b"0\r\nA: \x01\r\n", ChunkError::BadLine),
            (b"0\r\n\rx", ChunkError::BadLineEnd),
        ] {
            assert_eq!(decode(body, &[]), Err(error), "{body:?}");
        }
    }

    #[test]
    fn endless_lines_are_refused() {
        let zeros = vec![b'0'; 5000];
        assert_eq!(decode(&zeros, &[]), Err(ChunkError::SizeOverflow));
        let mut extension = b"1;".to_vec();
        extension.resize(5000, b'a');
        assert_eq!(decode(&extension, &[]), Err(ChunkError::BadLine));
        let chunk = [b"1;", "a".repeat(4000).as_bytes(), b"\r\nx\r\n"].concat();
        assert_eq!(decode(&chunk.repeat(6), &[]), Err(ChunkError::BadLine));
        let body = encode(&vec![vec![b'x']; 100_000]);
        assert_eq!(decode(&body, &[]).map(|(payload, ..)| payload.len()), Ok(100_000));
        let mut trailers = b"0\r\n".to_vec();
        trailers.extend_from_slice(&b"A: b\r\n".repeat(5000));
        assert_eq!(decode(&trailers, &[]), Err(ChunkError::BadLine));
    }

    #[test]
    fn the_largest_size_is_read_and_written() {
        let mut room = [0; CHUNK_HEAD_BYTES];
        assert_eq!(chunk_head(u64::MAX, &mut room), b"ffffffffffffffff\r\n");
        assert_eq!(chunk_head(16, &mut [0; CHUNK_HEAD_BYTES]), b"10\r\n");
        let mut decoder = Decoder::new();
        assert_eq!(decoder.next(b"FFFFFFFFFFFFFFFF\r\nab"), Ok((Piece::Data(b"ab"), 20)));
    }
}
