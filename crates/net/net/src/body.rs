//! Bodies, taken out of the bytes that a connection receives.

use std::io;
use std::rc::Rc;
use std::time::Duration;

use assay_http::chunked::ChunkError;
use assay_http::framing::{BodyDecoder, BodyFraming};
use assay_measurement::response_error::ResponseError;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::byte_stream::tls_error;
use crate::connection::Connection;

/// A part of a body. Never changes; shared by the store and by everyone who is being sent it.
pub type Chunk = Rc<[u8]>;

/// Failure to receive a body in full.
#[derive(Debug, Error)]
pub enum BodyError {
    #[error("the connection ended before the body did")]
    Truncated,
    /// Nothing came for too long, or the connection broke.
    #[error("the body could not be read: {0}")]
    Io(#[from] io::Error),
    #[error("the chunked coding of the body is broken: {0}")]
    Coding(#[from] ChunkError),
}

impl From<BodyError> for ResponseError {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::Truncated => ResponseError::Truncated,
            BodyError::Io(error) if error.kind() == io::ErrorKind::TimedOut => ResponseError::TimedOut,
            BodyError::Io(error) if tls_error(&error).is_some() => ResponseError::Tls,
            BodyError::Io(_) => ResponseError::Reset,
            BodyError::Coding(_) => ResponseError::Garbage,
        }
    }
}

/// Takes a body out of a stream of bytes.
pub struct BodyReader(BodyDecoder);

impl BodyReader {
    pub fn new(framing: BodyFraming) -> Self {
        Self(BodyDecoder::new(framing))
    }

    /// True once the whole body was read. A body that ends with its connection is never known to be done
    /// before.
    pub fn is_done(&self) -> bool {
        self.0.is_done()
    }

    /// The next part of the body, which may take `limit`; none when it is complete. Nothing is lost when the future is dropped.
    pub async fn next<S: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        connection: &mut Connection<S>,
        limit: Duration,
    ) -> Result<Option<Chunk>, BodyError> {
        loop {
            if self.is_done() {
                return Ok(None);
            }
            if !connection.input.unread().is_empty() {
                let (chunk, used) = self.take(connection.input.unread())?;
                connection.input.consume(used);
                connection.release_input();
                if chunk.is_some() {
                    return Ok(chunk);
                }
                continue;
            }
            let taken = connection.read(limit, |bytes, input, memory| {
                if bytes.is_empty() {
                    return self.end().map(|()| None);
                }
                let (chunk, used) = self.take(bytes)?;
                input.append(&bytes[used..], memory);
                Ok::<_, BodyError>(chunk)
            });
            if let Some(chunk) = taken.await?? {
                return Ok(Some(chunk));
            }
        }
    }

    /// Ends the body with its connection, which only a body without a length may do.
    fn end(&mut self) -> Result<(), BodyError> {
        if self.0.end() { Ok(()) } else { Err(BodyError::Truncated) }
    }

    /// Decodes `bytes`: the part of the body in them, and the count that is consumed.
    fn take(&mut self, bytes: &[u8]) -> Result<(Option<Chunk>, usize), BodyError> {
        if self.0.plain_left().is_some() {
            let count = self.0.take_plain(bytes.len());
            return Ok((Some(Chunk::from(&bytes[..count])), count));
        }
        let mut content = Vec::new();
        let used = self.0.decode_into(bytes, &mut content)?;
        Ok(((!content.is_empty()).then(|| Chunk::from(content)), used))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(reader: &mut BodyReader, bytes: &[u8]) -> (Vec<u8>, usize) {
        let (chunk, used) = reader.take(bytes).expect("is well formed");
        (chunk.map(|c| c.to_vec()).unwrap_or_default(), used)
    }

    #[test]
    fn a_length_takes_no_more_than_it_says() {
        let mut reader = BodyReader::new(BodyFraming::Length(5));
        assert_eq!(taken(&mut reader, b"abc"), (b"abc".to_vec(), 3));
        assert!(!reader.is_done());
        assert_eq!(taken(&mut reader, b"deGET"), (b"de".to_vec(), 2));
        assert!(reader.is_done());
    }

    #[test]
    fn chunks_that_arrive_in_pieces_are_put_together() {
        let mut reader = BodyReader::new(BodyFraming::Chunked);
        assert_eq!(taken(&mut reader, b"3\r\nab"), (b"ab".to_vec(), 5));
        assert_eq!(taken(&mut reader, b"c\r\n2\r\nde\r\n0\r\n\r\nnext"), (b"cde".to_vec(), 15));
        assert!(reader.is_done());
    }

    #[test]
    fn an_end_is_truncation_unless_the_connection_delimits_the_body() {
        assert!(BodyReader::new(BodyFraming::Length(5)).end().is_err());
        assert!(BodyReader::new(BodyFraming::Chunked).end().is_err());
        assert!(BodyReader::new(BodyFraming::UntilClose).end().is_ok());
    }
}
