//! Messages of JSON-RPC, and the parts of the protocol's parameters that the server reads.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::lsp::text::{Position, Range};

/// A message from the editor.
#[derive(Debug, Deserialize)]
pub(crate) struct Incoming {
    /// None: nothing is expected in return.
    pub id: Option<Value>,
    /// None: it is a response.
    pub method: Option<String>,
    #[serde(default)]
    pub params: Value,
}

/// Why a request has no result; numbers are those of JSON-RPC and of the protocol.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("this is no message of JSON-RPC: {0}")]
    Parse(String),
    #[error("the first request must be `initialize`")]
    NotInitialized,
    #[error("the server was told to shut down")]
    ShutDown,
    #[error("there is no `{0}` here")]
    UnknownMethod(String),
    #[error("the parameters are not those of `{method}`: {why}")]
    Params { method: String, why: String },
    #[error("{0}")]
    Rename(&'static str),
}

impl Refusal {
    fn code(&self) -> i32 {
        match self {
            Self::Parse(_) => -32_700,
            Self::NotInitialized => -32_002,
            Self::ShutDown => -32_600,
            Self::UnknownMethod(_) => -32_601,
            Self::Params { .. } => -32_602,
            // RequestFailed
            Self::Rename(_) => -32_803,
        }
    }
}

/// The response to a request.
pub(crate) fn response(id: &Value, result: Result<Value, Refusal>) -> Value {
    match result {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(refusal) => {
            let error = json!({ "code": refusal.code(), "message": refusal.to_string() });
            json!({ "jsonrpc": "2.0", "id": id, "error": error })
        }
    }
}

/// A message that expects nothing in return.
pub(crate) fn notification(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

/// The parameters of a method.
pub(crate) fn read<T: DeserializeOwned>(method: &str, params: Value) -> Result<T, Refusal> {
    serde_json::from_value(params)
        .map_err(|error| Refusal::Params { method: method.to_owned(), why: error.to_string() })
}

/// Of `initialize`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Initialize {
    #[serde(default)]
    pub initialization_options: Option<Options>,
}

/// The server's own options.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Options {
    /// Directories in which included files are looked for.
    #[serde(default)]
    pub include: Vec<String>,
}

/// Of a document by name.
#[derive(Debug, Deserialize)]
pub(crate) struct Identifier {
    pub uri: String,
    pub version: Option<i64>,
}

/// A document with its text.
#[derive(Debug, Deserialize)]
pub(crate) struct Item {
    pub uri: String,
    pub version: Option<i64>,
    pub text: String,
}

/// Of `textDocument/didOpen`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Opened {
    pub text_document: Item,
}

/// Of `textDocument/didChange`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Changed {
    pub text_document: Identifier,
    pub content_changes: Vec<Change>,
}

/// A part of a document that was replaced, or all of it.
#[derive(Debug, Deserialize)]
pub(crate) struct Change {
    pub range: Option<Range>,
    pub text: String,
}

/// Of whatever is about a document.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OfDocument {
    pub text_document: Identifier,
}

/// Of whatever is about a place.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AtPosition {
    pub text_document: Identifier,
    pub position: Position,
}

/// Of `textDocument/codeAction`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InRange {
    pub text_document: Identifier,
    pub range: Range,
}

/// Of `textDocument/rename`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Rename {
    pub text_document: Identifier,
    pub position: Position,
    pub new_name: String,
}
