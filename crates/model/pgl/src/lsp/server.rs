//! State of the server: open documents, and the response to each message.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use crate::{
    Analysis, FileError, Files, Listing, ResolveError, ResolvedFiles, ResolvedSource, Resolver, SearchPath,
    analyse,
};
use serde_json::{Value, json};

use crate::lsp::features;
use crate::lsp::protocol::{
    CodeActionParams, ContentChange, DidChangeParams, DidOpenParams, DocumentParams, InitializeParams,
    PositionParams, RenameParams, RequestError, RpcMessage, TextDocumentItem, notification, parse_params,
    response,
};
use crate::lsp::text::Lines;
use crate::lsp::uri;

/// The machine that the server runs on.
pub trait Host: Files {
    /// Path of a file with the text of a bundled one, for an editor to open; none if there is no such bundled file.
    fn bundled_path(&self, base_name: &str) -> Option<String>;

    /// An absolute path, whether or not there is such a file.
    fn absolute(&self, path: &str) -> String;
}

/// A text that is open in the editor.
pub(crate) struct Document {
    /// Path of the file, or the URI of a document that is no file.
    pub name: String,
    pub text: String,
    pub lines: Lines,
    version: Option<i64>,
    analysis: OnceCell<Analysis>,
    /// The diagnostics have not been published.
    needs_publishing: bool,
}

impl Document {
    fn new(uri: &str, text: String, version: Option<i64>) -> Self {
        let name = uri::path(uri).unwrap_or_else(|| uri.to_owned());
        let lines = Lines::new(&text);
        Self { name, text, lines, version, analysis: OnceCell::new(), needs_publishing: true }
    }

    /// Drops the analysis after a change of the text or of an included file.
    fn invalidate(&mut self) {
        self.analysis = OnceCell::new();
        self.needs_publishing = true;
    }

    fn change(&mut self, change: ContentChange) {
        match change.range {
            Some(range) => {
                let start = self.lines.offset(&self.text, range.start);
                let end = self.lines.offset(&self.text, range.end).max(start);
                self.text.replace_range(start..end, &change.text);
            }
            None => self.text = change.text,
        }
        self.lines = Lines::new(&self.text);
    }
}

/// A language server: [`Server::receive`] handles a message; [`Server::publish`] is called once no further message is waiting.
pub struct Server<H> {
    host: H,
    include: Vec<String>,
    documents: BTreeMap<String, Document>,
    is_initialized: bool,
    is_shut_down: bool,
    has_exited: bool,
}

impl<H: Host> Server<H> {
    /// A server before `initialize`, with the directories to search for included files.
    pub fn new(host: H, include: Vec<String>) -> Self {
        Self {
            host,
            include,
            documents: BTreeMap::new(),
            is_initialized: false,
            is_shut_down: false,
            has_exited: false,
        }
    }

    /// True after `exit`.
    pub fn has_exited(&self) -> bool {
        self.has_exited
    }

    /// True after `shutdown`, which must come before `exit`.
    pub fn was_shut_down(&self) -> bool {
        self.is_shut_down
    }

    /// Handles a message from the editor; returns the messages to send.
    pub fn receive(&mut self, message: &[u8]) -> Vec<Value> {
        let message: RpcMessage = match serde_json::from_slice(message) {
            Ok(message) => message,
            Err(error) => return vec![response(&Value::Null, Err(RequestError::Parse(error.to_string())))],
        };
        let Some(method) = message.method else {
            // A response, though the server sends no requests.
            return vec![];
        };
        match message.id {
            Some(id) => vec![response(&id, self.request(&method, message.params))],
            None => self.notification(&method, message.params),
        }
    }

    /// Diagnostics of the documents that have changed.
    pub fn publish(&mut self) -> Vec<Value> {
        let uris: Vec<String> = self
            .documents
            .iter()
            .filter(|(_, document)| document.needs_publishing)
            .map(|(uri, _)| uri.clone())
            .collect();
        let messages = uris.iter().filter_map(|uri| {
            let (document, analysis) = self.analysis(uri)?;
            let found = features::diagnostics(document, analysis, uri, &self.host);
            Some(publish_message(uri, document.version, &found))
        });
        let messages: Vec<Value> = messages.collect();
        self.documents.values_mut().for_each(|document| document.needs_publishing = false);
        messages
    }

    fn request(&mut self, method: &str, params: Value) -> Result<Value, RequestError> {
        match method {
            "initialize" => return self.initialize(parse_params(method, params)?),
            _ if !self.is_initialized => return Err(RequestError::NotInitialized),
            _ if self.is_shut_down => return Err(RequestError::ShutDown),
            "shutdown" => {
                self.is_shut_down = true;
                return Ok(Value::Null);
            }
            _ => {}
        }
        self.document_request(method, params)
    }

    /// Handles a request about a document; for one that is not open, the result is null.
    fn document_request(&self, method: &str, params: Value) -> Result<Value, RequestError> {
        let at = |params| parse_params::<PositionParams>(method, params);
        let locate = |at: &PositionParams| {
            let (document, analysis) = self.analysis(&at.text_document.uri)?;
            let offset = document.lines.offset(&document.text, at.position);
            Some((document, analysis, offset))
        };
        let result = match method {
            "textDocument/hover" => locate(&at(params)?).and_then(|(d, a, o)| features::hover(d, a, o)),
            "textDocument/completion" => locate(&at(params)?).map(|(d, a, o)| features::completion(d, a, o)),
            "textDocument/definition" => {
                let at = at(params)?;
                let uri = &at.text_document.uri;
                locate(&at).and_then(|(_, a, o)| features::definition(a, uri, o, &self.host))
            }
            "textDocument/references" => {
                let at = at(params)?;
                let uri = &at.text_document.uri;
                locate(&at).map(|(_, a, o)| features::references(a, uri, o, &self.host))
            }
            "textDocument/documentHighlight" => {
                locate(&at(params)?).map(|(d, a, o)| features::highlights(d, a, o))
            }
            "textDocument/rename" => {
                let rename: RenameParams = parse_params(method, params)?;
                let at = PositionParams { text_document: rename.text_document, position: rename.position };
                match locate(&at) {
                    Some((d, a, o)) => {
                        Some(features::rename(d, a, &at.text_document.uri, o, &rename.new_name)?)
                    }
                    None => None,
                }
            }
            "textDocument/documentSymbol" => {
                let of: DocumentParams = parse_params(method, params)?;
                self.analysis(&of.text_document.uri).map(|(d, a)| features::symbols(d, a))
            }
            "textDocument/codeAction" => {
                let within: CodeActionParams = parse_params(method, params)?;
                let uri = &within.text_document.uri;
                self.analysis(uri).map(|(d, a)| features::corrections(d, a, uri, within.range, &self.host))
            }
            "textDocument/formatting" => {
                let of: DocumentParams = parse_params(method, params)?;
                self.documents.get(&of.text_document.uri).and_then(features::formatting)
            }
            _ => return Err(RequestError::UnknownMethod(method.to_owned())),
        };
        Ok(result.unwrap_or(Value::Null))
    }

    /// Handles a notification; ignores one that cannot be parsed, as the protocol demands.
    fn notification(&mut self, method: &str, params: Value) -> Vec<Value> {
        match method {
            "exit" => self.has_exited = true,
            _ if !self.is_initialized => {}
            "textDocument/didOpen" => {
                if let Ok(DidOpenParams { text_document: TextDocumentItem { uri, version, text } }) =
                    parse_params(method, params)
                {
                    let document = Document::new(&uri, text, version);
                    let name = document.name.clone();
                    self.documents.insert(uri, document);
                    self.invalidate_includers(&name);
                }
            }
            "textDocument/didChange" => {
                if let Ok(changed) = parse_params(method, params) {
                    self.apply_changes(changed);
                }
            }
            "textDocument/didSave" => {
                // Included files that are not open may have changed on disk since.
                self.documents.values_mut().for_each(Document::invalidate);
            }
            "textDocument/didClose" => {
                if let Ok(DocumentParams { text_document }) = parse_params(method, params) {
                    return self.close(&text_document.uri);
                }
            }
            _ => {}
        }
        vec![]
    }

    fn apply_changes(&mut self, changed: DidChangeParams) {
        let Some(document) = self.documents.get_mut(&changed.text_document.uri) else { return };
        changed.content_changes.into_iter().for_each(|change| document.change(change));
        document.version = changed.text_document.version;
        document.invalidate();
        let name = document.name.clone();
        self.invalidate_includers(&name);
    }

    fn close(&mut self, uri: &str) -> Vec<Value> {
        let Some(closed) = self.documents.remove(uri) else { return vec![] };
        self.invalidate_includers(&closed.name);
        vec![publish_message(uri, None, &[])]
    }

    /// Drops the analyses of documents that include a file, whose text has changed.
    fn invalidate_includers(&mut self, name: &str) {
        for document in self.documents.values_mut().filter(|document| document.name != name) {
            let includes = document.analysis.get().is_none_or(|analysis| {
                // It may also be the file that an `#include` has not found.
                analysis.sources.iter().any(|source| source.name == name)
                    || analysis.diagnostics.iter().any(|d| d.message.starts_with("cannot include"))
            });
            if includes {
                document.invalidate();
            }
        }
    }

    /// An open document with its analysis.
    fn analysis(&self, uri: &str) -> Option<(&Document, &Analysis)> {
        let document = self.documents.get(uri)?;
        let analysis = document.analysis.get_or_init(|| {
            let search = SearchPath::new(self.include.clone(), EditorFiles(self));
            analyse(&document.name, &AbsolutePaths { search, host: &self.host })
        });
        Some((document, analysis))
    }

    fn initialize(&mut self, params: InitializeParams) -> Result<Value, RequestError> {
        self.is_initialized = true;
        self.include.extend(params.initialization_options.unwrap_or_default().include);
        Ok(json!({
            "capabilities": {
                "positionEncoding": "utf-16",
                // 2: incremental changes.
                "textDocumentSync": { "openClose": true, "change": 2, "save": true },
                "hoverProvider": true,
                "completionProvider": { "triggerCharacters": [".", "\""] },
                "definitionProvider": true,
                "referencesProvider": true,
                "documentHighlightProvider": true,
                "renameProvider": true,
                "documentSymbolProvider": true,
                "codeActionProvider": { "codeActionKinds": ["quickfix"] },
                "documentFormattingProvider": true,
            },
            "serverInfo": { "name": "assay", "version": env!("CARGO_PKG_VERSION") },
        }))
    }
}

fn publish_message(uri: &str, version: Option<i64>, diagnostics: &[Value]) -> Value {
    let mut params = json!({ "uri": uri, "diagnostics": diagnostics });
    if let Some(version) = version {
        params["version"] = version.into();
    }
    notification("textDocument/publishDiagnostics", params)
}

/// Files as the editor has them, or as the host has them if they are not open.
struct EditorFiles<'s, H>(&'s Server<H>);

impl<H: Host> Files for EditorFiles<'_, H> {
    fn text(&self, path: &str) -> Result<Option<String>, FileError> {
        let absolute_path = self.0.host.absolute(path);
        match self
            .0
            .documents
            .values()
            .find(|document| document.name == path || document.name == absolute_path)
        {
            Some(document) => Ok(Some(document.text.clone())),
            None => self.0.host.text(path),
        }
    }

    fn list(&self, path: &str) -> Result<Option<Listing>, FileError> {
        self.0.host.list(path)
    }

    fn bytes(&self, path: &std::path::Path) -> Result<Vec<u8>, FileError> {
        self.0.host.bytes(path)
    }
}

/// Resolver that names files by absolute paths, as an editor does.
struct AbsolutePaths<'h, R, H> {
    search: R,
    host: &'h H,
}

impl<R: Resolver, H: Host> Resolver for AbsolutePaths<'_, R, H> {
    fn read(&self, name: &str, including: Option<&str>) -> Result<ResolvedSource, ResolveError> {
        let found = self.search.read(name, including)?;
        // The main file keeps the name of its document, and bundled files have no path.
        let is_file = including.is_some() && !found.name.starts_with("<bundled>/");
        let name = if is_file { self.host.absolute(&found.name) } else { found.name };
        Ok(ResolvedSource { name, text: found.text })
    }

    fn files(&self, name: &str, including: Option<&str>) -> Result<ResolvedFiles, ResolveError> {
        self.search.files(name, including)
    }
}
