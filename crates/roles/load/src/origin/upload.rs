//! Check of a request body against the one that its robot sends.

use assay_http::chunked::{ChunkError, Decoder, Piece};
use assay_http::framing::BodyFraming;
use assay_workload::body::{Body, Pool};
use assay_workload::{Object, Universe};

use super::request::{OriginRequest, RequestTarget};

/// Rest of a request body.
#[derive(Debug)]
pub struct UploadCheck {
    framing: UploadFraming,
    check: Option<Box<ExpectedUpload>>,
}

#[derive(Debug)]
enum UploadFraming {
    Length(u64),
    Chunked(Decoder),
}

/// The body that should come.
#[derive(Debug)]
struct ExpectedUpload {
    object: Object,
    body: Body,
    /// Bytes that came so far.
    at: u64,
    /// Position of the first wrong byte.
    wrong_at: Option<u64>,
}

/// Difference between a request body and what its robot sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrongUpload {
    /// The object whose bytes should have come.
    pub object: Object,
    /// The first byte that differed; none: only the length is wrong.
    pub byte: Option<u64>,
    /// Bytes that came.
    pub length: u64,
    /// Bytes that should have come.
    pub size_bytes: u64,
}

impl UploadCheck {
    /// For the body of a request that is delimited like this; none: there is none, and should be none. Only what a
    /// robot marked as its own request can be compared.
    pub fn new(universe: &Universe, request: &OriginRequest, framing: BodyFraming) -> Option<Self> {
        let check = || ExpectedUpload::new(universe, request).map(Box::new);
        match framing {
            BodyFraming::Length(bytes) if bytes > 0 => {
                Some(Self { framing: UploadFraming::Length(bytes), check: check() })
            }
            BodyFraming::Chunked => {
                Some(Self { framing: UploadFraming::Chunked(Decoder::new()), check: check() })
            }
            BodyFraming::Length(_) | BodyFraming::None | BodyFraming::UntilClose => {
                // A body that should be there and is not is a wrong one.
                let check = check().filter(|check| check.body.size() > 0)?;
                Some(Self { framing: UploadFraming::Length(0), check: Some(check) })
            }
        }
    }

    /// For a body of any length that nothing is compared with.
    pub fn unchecked() -> Self {
        Self { framing: UploadFraming::Length(u64::MAX), check: None }
    }

    /// Takes what comes: how many bytes of `input` belong to it, and whether it is complete.
    pub fn take(&mut self, pool: &Pool, input: &[u8]) -> Result<(usize, bool), ChunkError> {
        match &mut self.framing {
            UploadFraming::Length(left) => {
                let taken = usize::try_from(*left).unwrap_or(usize::MAX).min(input.len());
                *left -= taken as u64;
                let is_complete = *left == 0;
                self.compare(pool, &input[..taken]);
                Ok((taken, is_complete))
            }
            UploadFraming::Chunked(_) => self.take_chunks(pool, input),
        }
    }

    fn take_chunks(&mut self, pool: &Pool, input: &[u8]) -> Result<(usize, bool), ChunkError> {
        let mut taken = 0;
        loop {
            let UploadFraming::Chunked(decoder) = &mut self.framing else { return Ok((taken, true)) };
            let (piece, bytes) = decoder.next(&input[taken..])?;
            taken += bytes;
            match piece {
                Piece::Data(data) => self.compare(pool, data),
                Piece::NeedMore => return Ok((taken, false)),
                Piece::End => return Ok((taken, true)),
            }
        }
    }

    fn compare(&mut self, pool: &Pool, data: &[u8]) {
        let Some(check) = &mut self.check else { return };
        if check.wrong_at.is_none() {
            check.wrong_at = check.body.matches(pool, check.at, data).err();
        }
        check.at += data.len() as u64;
    }

    /// Error of a complete body, if there is one.
    pub fn wrong(&self) -> Option<WrongUpload> {
        let check = self.check.as_ref()?;
        let (object, size_bytes) = (check.object, check.body.size());
        match check.wrong_at {
            Some(at) if at < size_bytes => {
                Some(WrongUpload { object, byte: Some(at), length: check.at, size_bytes })
            }
            _ if check.at != size_bytes => {
                Some(WrongUpload { object, byte: None, length: check.at, size_bytes })
            }
            _ => None,
        }
    }
}

impl ExpectedUpload {
    fn new(universe: &Universe, request: &OriginRequest) -> Option<Self> {
        let (RequestTarget::Object { .. }, Some(mark)) = (request.target, request.mark) else { return None };
        let id = universe.request_body(mark.xact, request.method, request.origin)?;
        let object = universe.object(id);
        Some(Self { object, body: universe.body(&object, 0), at: 0, wrong_at: None })
    }
}
