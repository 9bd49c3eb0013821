//! The documents that are open, and the response to each message.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use crate::{Analysis, Files, Listing, ResolvedFiles, ResolvedSource, Resolver, SearchPath, analyse};
use serde_json::{Value, json};

use crate::lsp::features;
use crate::lsp::protocol::{
    AtPosition, Change, Changed, InRange, Incoming, Initialize, Item, OfDocument, Opened, Refusal, Rename,
    notification, read, response,
};
use crate::lsp::text::Lines;
use crate::lsp::uri;

/// What the server requests of the machine it runs on.
pub trait Host: Files {
    /// The path of a file with the text of a bundled one, which an editor can open; none if there is no such file.
    fn bundled_path(&self, base_name: &str) -> Option<String>;

    /// A path from the root on, without looking whether there is such a file.
    fn absolute(&self, path: &str) -> String;
}

/// A text that is open in the editor, or was found beside it.
pub(crate) struct Document {
    /// The path of its file; the whole address where that is none.
    pub name: String,
    pub text: String,
    pub lines: Lines,
    version: Option<i64>,
    analysis: OnceCell<Analysis>,
    /// The editor has not been told what is wrong with it.
    untold: bool,
}

impl Document {
    fn new(uri: &str, text: String, version: Option<i64>) -> Self {
        let name = uri::path(uri).unwrap_or_else(|| uri.to_owned());
        let lines = Lines::of(&text);
        Self { name, text, lines, version, analysis: OnceCell::new(), untold: true }
    }

    /// Its text has changed, or that of a file it includes.
    fn forget(&mut self) {
        self.analysis = OnceCell::new();
        self.untold = true;
    }

    fn change(&mut self, change: Change) {
        match change.range {
            Some(range) => {
                let start = self.lines.offset(&self.text, range.start);
                let end = self.lines.offset(&self.text, range.end).max(start);
                self.text.replace_range(start..end, &change.text);
            }
            None => self.text = change.text,
        }
        self.lines = Lines::of(&self.text);
    }
}

/// A language server: [`Server::receive`] takes each message, [`Server::settle`] is called when there are no more for now.
pub struct Server<H> {
    host: H,
    include: Vec<String>,
    documents: BTreeMap<String, Document>,
    is_initialized: bool,
    is_shut_down: bool,
    has_exited: bool,
}

impl<H: Host> Server<H> {
    /// A server that has not been greeted. `include`: directories in which included files are looked for.
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

    /// True once the editor has told it to exit.
    pub fn has_exited(&self) -> bool {
        self.has_exited
    }

    /// True if the editor has said goodbye before that, as it should.
    pub fn was_shut_down(&self) -> bool {
        self.is_shut_down
    }

    /// What a message from the editor leads to.
    pub fn receive(&mut self, message: &[u8]) -> Vec<Value> {
        let incoming: Incoming = match serde_json::from_slice(message) {
            Ok(incoming) => incoming,
            Err(error) => return vec![response(&Value::Null, Err(Refusal::Parse(error.to_string())))],
        };
        let Some(method) = incoming.method else {
            // The response to a request: there are none.
            return vec![];
        };
        match incoming.id {
            Some(id) => vec![response(&id, self.request(&method, incoming.params))],
            None => self.notice(&method, incoming.params),
        }
    }

    /// What the editor should be told about documents that have changed.
    pub fn settle(&mut self) -> Vec<Value> {
        let uris: Vec<String> = self
            .documents
            .iter()
            .filter(|(_, document)| document.untold)
            .map(|(uri, _)| uri.clone())
            .collect();
        let told = uris.iter().filter_map(|uri| {
            let (document, analysis) = self.analysed(uri)?;
            let found = features::diagnostics(document, analysis, uri, &self.host);
            Some(published(uri, document.version, &found))
        });
        let told: Vec<Value> = told.collect();
        self.documents.values_mut().for_each(|document| document.untold = false);
        told
    }

    fn request(&mut self, method: &str, params: Value) -> Result<Value, Refusal> {
        match method {
            "initialize" => return self.initialize(read(method, params)?),
            _ if !self.is_initialized => return Err(Refusal::NotInitialized),
            _ if self.is_shut_down => return Err(Refusal::ShutDown),
            "shutdown" => {
                self.is_shut_down = true;
                return Ok(Value::Null);
            }
            _ => {}
        }
        self.about_document(method, params)
    }

    /// Requests that are about a document; one that is not open has no result.
    fn about_document(&self, method: &str, params: Value) -> Result<Value, Refusal> {
        let at = |params| read::<AtPosition>(method, params);
        let place = |at: &AtPosition| {
            let (document, analysis) = self.analysed(&at.text_document.uri)?;
            let offset = document.lines.offset(&document.text, at.position);
            Some((document, analysis, offset))
        };
        let result = match method {
            "textDocument/hover" => place(&at(params)?).and_then(|(d, a, o)| features::hover(d, a, o)),
            "textDocument/completion" => place(&at(params)?).map(|(d, a, o)| features::completion(d, a, o)),
            "textDocument/definition" => {
                let at = at(params)?;
                let uri = &at.text_document.uri;
                place(&at).and_then(|(_, a, o)| features::definition(a, uri, o, &self.host))
            }
            "textDocument/references" => {
                let at = at(params)?;
                let uri = &at.text_document.uri;
                place(&at).map(|(_, a, o)| features::references(a, uri, o, &self.host))
            }
            "textDocument/documentHighlight" => {
                place(&at(params)?).map(|(d, a, o)| features::highlights(d, a, o))
            }
            "textDocument/rename" => {
                let rename: Rename = read(method, params)?;
                let at = AtPosition { text_document: rename.text_document, position: rename.position };
                match place(&at) {
                    Some((d, a, o)) => {
                        Some(features::rename(d, a, &at.text_document.uri, o, &rename.new_name)?)
                    }
                    None => None,
                }
            }
            "textDocument/documentSymbol" => {
                let of: OfDocument = read(method, params)?;
                self.analysed(&of.text_document.uri).map(|(d, a)| features::symbols(d, a))
            }
            "textDocument/codeAction" => {
                let within: InRange = read(method, params)?;
                let uri = &within.text_document.uri;
                self.analysed(uri).map(|(d, a)| features::corrections(d, a, uri, within.range, &self.host))
            }
            "textDocument/formatting" => {
                let of: OfDocument = read(method, params)?;
                self.documents.get(&of.text_document.uri).and_then(features::formatting)
            }
            _ => return Err(Refusal::UnknownMethod(method.to_owned())),
        };
        Ok(result.unwrap_or(Value::Null))
    }

    /// A message that expects nothing in return. One that cannot be read is passed over, as the protocol wants it.
    fn notice(&mut self, method: &str, params: Value) -> Vec<Value> {
        match method {
            "exit" => self.has_exited = true,
            _ if !self.is_initialized => {}
            "textDocument/didOpen" => {
                if let Ok(Opened { text_document: Item { uri, version, text } }) = read(method, params) {
                    let document = Document::new(&uri, text, version);
                    let name = document.name.clone();
                    self.documents.insert(uri, document);
                    self.forget_those_that_include(&name);
                }
            }
            "textDocument/didChange" => {
                if let Ok(changed) = read(method, params) {
                    self.changed(changed);
                }
            }
            "textDocument/didSave" => {
                // What it includes may have been written by others in the meantime.
                self.documents.values_mut().for_each(Document::forget);
            }
            "textDocument/didClose" => {
                if let Ok(OfDocument { text_document }) = read(method, params) {
                    return self.closed(&text_document.uri);
                }
            }
            _ => {}
        }
        vec![]
    }

    fn changed(&mut self, changed: Changed) {
        let Some(document) = self.documents.get_mut(&changed.text_document.uri) else { return };
        changed.content_changes.into_iter().for_each(|change| document.change(change));
        document.version = changed.text_document.version;
        document.forget();
        let name = document.name.clone();
        self.forget_those_that_include(&name);
    }

    fn closed(&mut self, uri: &str) -> Vec<Value> {
        let Some(closed) = self.documents.remove(uri) else { return vec![] };
        self.forget_those_that_include(&closed.name);
        vec![published(uri, None, &[])]
    }

    /// The text of a file is another now, or comes from another place.
    fn forget_those_that_include(&mut self, name: &str) {
        for document in self.documents.values_mut().filter(|document| document.name != name) {
            let includes = document.analysis.get().is_none_or(|analysis| {
                // A file that was not found may have been looked for.
                analysis.sources.iter().any(|source| source.name == name)
                    || analysis.diagnostics.iter().any(|d| d.message.starts_with("cannot include"))
            });
            if includes {
                document.forget();
            }
        }
    }

    /// A document that is open, with what is known about it.
    fn analysed(&self, uri: &str) -> Option<(&Document, &Analysis)> {
        let document = self.documents.get(uri)?;
        let analysis = document.analysis.get_or_init(|| {
            let search = SearchPath::over(self.include.clone(), OpenFirst(self));
            analyse(&document.name, &ByWholePath { search, host: &self.host })
        });
        Some((document, analysis))
    }

    fn initialize(&mut self, params: Initialize) -> Result<Value, Refusal> {
        self.is_initialized = true;
        self.include.extend(params.initialization_options.unwrap_or_default().include);
        Ok(json!({
            "capabilities": {
                "positionEncoding": "utf-16",
                // Opening and closing; changes as parts; saving.
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

/// What is wrong with a document, for the editor.
fn published(uri: &str, version: Option<i64>, diagnostics: &[Value]) -> Value {
    let mut params = json!({ "uri": uri, "diagnostics": diagnostics });
    if let Some(version) = version {
        params["version"] = version.into();
    }
    notification("textDocument/publishDiagnostics", params)
}

/// Files as they are in the editor, and on the host where they are not open.
struct OpenFirst<'s, H>(&'s Server<H>);

impl<H: Host> Files for OpenFirst<'_, H> {
    fn text(&self, path: &str) -> Result<Option<String>, String> {
        let whole = self.0.host.absolute(path);
        match self.0.documents.values().find(|document| document.name == path || document.name == whole) {
            Some(document) => Ok(Some(document.text.clone())),
            None => self.0.host.text(path),
        }
    }

    fn list(&self, path: &str) -> Result<Option<Listing>, String> {
        self.0.host.list(path)
    }

    fn bytes(&self, path: &std::path::Path) -> Result<Vec<u8>, String> {
        self.0.host.bytes(path)
    }
}

/// Names what it finds by whole paths: that is how an editor knows files.
struct ByWholePath<'h, R, H> {
    search: R,
    host: &'h H,
}

impl<R: Resolver, H: Host> Resolver for ByWholePath<'_, R, H> {
    fn read(&self, name: &str, including: Option<&str>) -> Result<ResolvedSource, String> {
        let found = self.search.read(name, including)?;
        // The main file keeps the name of its document, and bundled ones have no path.
        let is_file = including.is_some() && !found.name.starts_with("<bundled>/");
        let name = if is_file { self.host.absolute(&found.name) } else { found.name };
        Ok(ResolvedSource { name, text: found.text })
    }

    fn files(&self, name: &str, including: Option<&str>) -> Result<ResolvedFiles, String> {
        self.search.files(name, including)
    }
}
