//! Why a response is an error.

use assay_http::chunked::ChunkError;
use assay_http::coding::GzipError;
use assay_http::head::HeadError;
use assay_http::range::MultipartError;
use assay_measurement::error_kind::ErrorKind;
use assay_net::limits::MOST_INTERIM_RESPONSES;
use thiserror::Error;

use crate::check::Wrong;

/// Why a response is an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Flaw {
    /// Not HTTP.
    #[error("{0}")]
    Head(HeadError),
    /// A chunked body that is none.
    #[error("{0}")]
    Chunk(ChunkError),
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
    #[error("more than {MOST_INTERIM_RESPONSES} interim responses (1xx) came before the response")]
    EndlessInterim,
    /// The connection ended in the middle of the head.
    #[error("the connection was closed after {0} bytes of the head")]
    HeadCutOff(usize),
    /// HTTP, but not the response that it must be.
    #[error("{0}")]
    Wrong(Wrong),
}

impl Flaw {
    /// The class it is counted under.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Flaw::Head(_)
            | Flaw::Chunk(_)
            | Flaw::Coding(_)
            | Flaw::Parts(_)
            | Flaw::Upgrade
            | Flaw::EndlessInterim => ErrorKind::Malformed,
            Flaw::HeadCutOff(_) => ErrorKind::TruncatedBody,
            Flaw::Wrong(wrong) => wrong.kind(),
        }
    }
}

impl From<Wrong> for Flaw {
    fn from(wrong: Wrong) -> Self {
        Flaw::Wrong(wrong)
    }
}
