//! Messages of JSON-RPC, and the parameters of the protocol's methods that the server uses.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::lsp::text::{Position, Range};

/// A message from the editor: a request, a notification or a response.
#[derive(Debug, Deserialize)]
pub(crate) struct RpcMessage {
    /// None for a notification.
    pub id: Option<Value>,
    /// None for a response.
    pub method: Option<String>,
    #[serde(default)]
    pub params: Value,
}

/// The error of a response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RequestError {
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

impl RequestError {
    /// Error code of JSON-RPC or of the protocol.
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

pub(crate) fn response(id: &Value, result: Result<Value, RequestError>) -> Value {
    match result {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(error) => {
            let error = json!({ "code": error.code(), "message": error.to_string() });
            json!({ "jsonrpc": "2.0", "id": id, "error": error })
        }
    }
}

pub(crate) fn notification(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

pub(crate) fn parse_params<T: DeserializeOwned>(method: &str, params: Value) -> Result<T, RequestError> {
    serde_json::from_value(params)
        .map_err(|error| RequestError::Params { method: method.to_owned(), why: error.to_string() })
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InitializeParams {
    #[serde(default)]
    pub initialization_options: Option<InitializationOptions>,
}

/// Options that are specific to this server.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct InitializationOptions {
    /// Directories to search for included files.
    #[serde(default)]
    pub include: Vec<String>,
}

/// A document by its URI.
#[derive(Debug, Deserialize)]
pub(crate) struct TextDocumentIdentifier {
    pub uri: String,
    pub version: Option<i64>,
}

/// A document with its text.
#[derive(Debug, Deserialize)]
pub(crate) struct TextDocumentItem {
    pub uri: String,
    pub version: Option<i64>,
    pub text: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DidOpenParams {
    pub text_document: TextDocumentItem,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DidChangeParams {
    pub text_document: TextDocumentIdentifier,
    pub content_changes: Vec<ContentChange>,
}

/// A replacement of a range of a document, or of all of it.
#[derive(Debug, Deserialize)]
pub(crate) struct ContentChange {
    pub range: Option<Range>,
    pub text: String,
}

/// Parameters of methods about a document.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DocumentParams {
    pub text_document: TextDocumentIdentifier,
}

/// Parameters of methods about a position.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PositionParams {
    pub text_document: TextDocumentIdentifier,
    pub position: Position,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CodeActionParams {
    pub text_document: TextDocumentIdentifier,
    pub range: Range,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RenameParams {
    pub text_document: TextDocumentIdentifier,
    pub position: Position,
    pub new_name: String,
}
