//! Errors of reading a cluster file, apart from those of its notation.

use thiserror::Error;

/// A text in a cluster file that is not one of the values of its field.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum ClusterValueError {
    #[error("`{0}` is no path like \"/file.html\"")]
    Path(String),
    #[error("`{0}` is neither \"constant\" nor \"exponential\"")]
    Law(String),
    #[error("`{0}` is neither \"through\" (the switch) nor \"past\" (it)")]
    Responses(String),
}
