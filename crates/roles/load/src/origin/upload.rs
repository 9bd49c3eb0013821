//! Check of a request body against the one that its robot sends.

use assay_http::chunked::ChunkError;
use assay_http::framing::{BodyDecoder, BodyFraming};
use assay_workload::Universe;
use assay_workload::body::{Body, Pool};

use super::request::{OriginRequest, RequestTarget};
use super::tally::RequestError;

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
    body: Body,
    /// Bytes that came so far.
    at: u64,
    /// Position of the first wrong byte.
    wrong_at: Option<u64>,
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

    /// Error of a complete body.
    pub fn error(&self) -> Option<RequestError> {
        let expected = self.expected.as_ref()?;
        let (received, size_bytes) = (expected.at, expected.body.size());
        match expected.wrong_at {
            Some(at) if at < size_bytes => Some(RequestError::WrongByte { at, size_bytes }),
            _ if received != size_bytes => Some(RequestError::WrongLength { received, size_bytes }),
            _ => None,
        }
    }
}

impl ExpectedUpload {
    fn new(universe: &Universe, request: &OriginRequest) -> Option<Self> {
        let (RequestTarget::Object { .. }, Some(mark)) = (request.target, request.mark) else { return None };
        let id = universe.request_body(mark.xact, request.method, request.origin)?;
        let body = universe.body(&universe.object(id), 0);
        Some(Self { body, at: 0, wrong_at: None })
    }

    fn compare(&mut self, pool: &Pool, data: &[u8]) {
        if self.wrong_at.is_none() {
            self.wrong_at = self.body.matches(pool, self.at, data).err();
        }
        self.at += data.len() as u64;
    }
}
