//! Errors of responses.

use assay_http::chunked::ChunkError;
use assay_http::coding::GzipError;
use assay_http::head::HeadError;
use assay_http::range::MultipartError;
use assay_measurement::error_kind::ErrorKind;
use assay_net::limits::MAX_INTERIM_RESPONSES;
use thiserror::Error;

use crate::check::CheckError;

/// Defect of a response.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ResponseError {
    /// The head is not HTTP.
    #[error("{0}")]
    Head(HeadError),
    /// A chunked body that is none.
    #[error("{0}")]
    Chunk(#[from] ChunkError),
    /// A coded body that is none.
    #[error("{0}")]
    Coding(GzipError),
    /// A body of several parts that is none.
    #[error("{0}")]
    Parts(MultipartError),
    /// A change of protocol that was not requested.
    #[error("status 101, but no upgrade was requested")]
    Upgrade,
    /// Interim responses without an end.
    #[error("more than {MAX_INTERIM_RESPONSES} interim responses (1xx) came before the response")]
    EndlessInterim,
    /// The connection ended in the middle of the head.
    #[error("the connection was closed after {0} bytes of the head")]
    HeadCutOff(usize),
    /// HTTP, but not the response that it must be.
    #[error("{0}")]
    Check(#[from] CheckError),
}

impl ResponseError {
    /// Class that the error is counted under.
    pub fn kind(&self) -> ErrorKind {
        match self {
            ResponseError::Head(_)
            | ResponseError::Chunk(_)
            | ResponseError::Parts(_)
            | ResponseError::Upgrade
            | ResponseError::EndlessInterim => ErrorKind::Malformed,
            // It is HTTP, and the bytes within it are not those that the origin coded.
            ResponseError::Coding(_) => ErrorKind::WrongBytes,
            ResponseError::HeadCutOff(_) => ErrorKind::TruncatedBody,
            ResponseError::Check(error) => error.kind(),
        }
    }
}
