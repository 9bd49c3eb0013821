//! Check of a request body against the one that its robot sends.

use assay_http::chunked::ChunkError;
use assay_http::framing::{BodyDecoder, BodyFraming};
use assay_workload::body::{Body, Pool};
use assay_workload::{Object, Universe};

use super::request::{OriginRequest, RequestTarget};

/// Rest of a request body.
#[derive(Debug)]
pub struct UploadCheck {
    body: BodyDecoder,
    /// None: the body may be any.
    expected: Option<Box<ExpectedUpload>>,
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
        let body = BodyDecoder::new(framing);
        let expected = ExpectedUpload::new(universe, request).map(Box::new);
        // A body that should be there and is not is a wrong one.
        let is_missing = expected.as_ref().is_some_and(|expected| expected.body.size() > 0);
        (!body.is_done() || is_missing).then_some(Self { body, expected })
    }

    /// Takes what comes, and returns how many bytes of `input` belong to the body.
    pub fn take(&mut self, pool: &Pool, input: &[u8]) -> Result<usize, ChunkError> {
        self.body.decode(input, |data| {
            if let Some(expected) = &mut self.expected {
                expected.compare(pool, data);
            }
            Ok(())
        })
    }

    pub fn is_complete(&self) -> bool {
        self.body.is_done()
    }

    /// Error of a complete body, if there is one.
    pub fn wrong(&self) -> Option<WrongUpload> {
        let expected = self.expected.as_ref()?;
        let (object, length, size_bytes) = (expected.object, expected.at, expected.body.size());
        match expected.wrong_at {
            Some(at) if at < size_bytes => Some(WrongUpload { object, byte: Some(at), length, size_bytes }),
            _ if length != size_bytes => Some(WrongUpload { object, byte: None, length, size_bytes }),
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
    fn compare(&mut self, pool: &Pool, data: &[u8]) {
        if self.wrong_at.is_none() {
            self.wrong_at = self.body.matches(pool, self.at, data).err();
        }
        self.at += data.len() as u64;
    }
}
