//! The language server, by a scripted session of an editor with the real binary.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::support::{Assay, Said};

const WORKLOAD: &str = "\
// How often all robots together send requests. é \u{1f600}
rate Peak = 50/sec;
#include \"own.pg\"
#include \"contents.pg\"
Server S = { kind = \"s\"; contents = [ own, cntImage ]; addresses = ['10.0.0.1:80']; };
Robot R = { kind = \"\u{1f600}\"; req_rat = 0.4/sec; origins = S.addresses; addresses = ['10.0.1.1' ** 9]; };
Phase p = { name = \"p\"; goal.duration = 1min; };
schedule(p);
use(S, R);
";

/// An editor with one server.
struct Editor {
    assay: Assay,
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    last: u64,
    /// Diagnostics as they were published, newest last.
    published: Vec<Value>,
}

impl Editor {
    fn start() -> Self {
        let assay = Assay::new();
        assay.file("own.pg", "Content own = { kind = \"own\"; size = const(1KB); cachable = 100%; };\n");
        let mut command = assay.command(&["lsp"]);
        command.env("XDG_CACHE_HOME", assay.path("cache"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary starts");
        let (to, from) = (child.stdin.take(), BufReader::new(child.stdout.take().expect("a pipe")));
        let mut editor = Self { assay, child, to, from, last: 0, published: Vec::new() };
        let greeted = editor.request("initialize", json!({ "capabilities": {} }));
        assert_eq!(greeted["capabilities"]["hoverProvider"], true);
        editor.notify("initialized", json!({}));
        editor
    }

    fn send(&mut self, message: &Value) {
        let text = message.to_string();
        let framed = format!("Content-Length: {}\r\n\r\n{text}", text.len());
        self.to.as_mut().expect("a pipe").write_all(framed.as_bytes()).expect("it is read");
    }

    fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// A request, and its result.
    fn request(&mut self, method: &str, params: Value) -> Value {
        let response = self.exchange(method, params);
        assert!(response["error"].is_null(), "{method}: {response}");
        response["result"].clone()
    }

    /// A request, and the whole response to it.
    fn exchange(&mut self, method: &str, params: Value) -> Value {
        self.last += 1;
        let id = self.last;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            let message = self.receive();
            if message["id"] == json!(id) {
                return message;
            }
        }
    }

    fn receive(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            assert!(self.from.read_line(&mut line).expect("text") > 0, "the server has gone");
            match line.trim_end().split_once(": ") {
                Some((_, value)) => length = value.parse().expect("a length"),
                None => break,
            }
        }
        let mut bytes = vec![0; length];
        self.from.read_exact(&mut bytes).expect("a whole message");
        let message: Value = serde_json::from_slice(&bytes).expect("JSON");
        if message["method"] == "textDocument/publishDiagnostics" {
            self.published.push(message["params"].clone());
        }
        message
    }

    /// The next diagnostics that are published.
    fn diagnostics(&mut self) -> Vec<Value> {
        let before = self.published.len();
        while self.published.len() == before {
            self.receive();
        }
        self.published[before]["diagnostics"].as_array().expect("a list").clone()
    }

    fn uri(&self, name: &str) -> String {
        format!("file://{}", self.assay.path(name).display())
    }

    fn open(&mut self, name: &str, text: &str) -> Vec<Value> {
        self.assay.file(name, text);
        let uri = self.uri(name);
        let item = json!({ "uri": uri, "languageId": "pgl", "version": 1, "text": text });
        self.notify("textDocument/didOpen", json!({ "textDocument": item }));
        self.diagnostics()
    }

    /// A place in the text, by what stands there.
    fn at(&self, name: &str, text: &str, words: &str) -> Value {
        let offset = text.find(words).unwrap_or_else(|| panic!("no {words}"));
        let line = text[..offset].matches('\n').count();
        let start = text[..offset].rfind('\n').map_or(0, |at| at + 1);
        let character = text[start..offset].encode_utf16().count();
        json!({
            "textDocument": { "uri": self.uri(name) },
            "position": { "line": line, "character": character },
        })
    }

    /// Says goodbye, as editors do.
    fn end(mut self) -> Said {
        self.request("shutdown", Value::Null);
        self.notify("exit", Value::Null);
        self.to = None;
        Said::from(self.child.wait_with_output().expect("an end"))
    }
}

/// A text with edits of the protocol applied, all of which are in one line or whole lines.
fn edited(text: &str, edits: &Value) -> String {
    let place = |position: &Value| {
        let line = position["line"].as_u64().expect("a line") as usize;
        let start: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
        let units = position["character"].as_u64().expect("a character") as usize;
        let mut seen = 0;
        let rest = &text[start..];
        let characters = rest.char_indices().find(|(_, c)| {
            let here = seen == units;
            seen += c.len_utf16();
            here
        });
        start + characters.map_or(rest.len(), |(at, _)| at)
    };
    let mut out = text.to_owned();
    for edit in edits.as_array().expect("a list").iter().rev() {
        let (start, end) = (place(&edit["range"]["start"]), place(&edit["range"]["end"]));
        out.replace_range(start..end, edit["newText"].as_str().expect("text"));
    }
    out
}

#[test]
fn a_mistake_is_shown_as_it_is_typed_and_corrected_by_the_compilers_own_advice() {
    let mut editor = Editor::start();
    let found = editor.open("w.pg", WORKLOAD);
    let mistake = found.iter().find(|d| d["code"] == "PGL022").expect("the misspelt field");
    // Counted in units of UTF-16: the picture before it on the line has two.
    let column = "Robot R = { kind = \"\u{1f600}\"; ".encode_utf16().count();
    assert_eq!(mistake["range"]["start"], json!({ "line": 5, "character": column }));
    let message = mistake["message"].as_str().expect("text");
    assert!(
        message.contains("no field `req_rat`") && message.contains("did you mean `req_rate`?"),
        "{message}"
    );

    let uri = editor.uri("w.pg");
    let within = json!({ "textDocument": { "uri": uri }, "range": mistake["range"], "context": { "diagnostics": [] } });
    let fixes = editor.request("textDocument/codeAction", within);
    assert_eq!(fixes[0]["title"], "Write `req_rate`");
    let right = edited(WORKLOAD, &fixes[0]["edit"]["changes"][&uri]);
    assert_eq!(right, WORKLOAD.replace("req_rat ", "req_rate "));

    // A single word is typed: what was wrong is not any more.
    let change = &fixes[0]["edit"]["changes"][&uri][0];
    let change = json!({ "range": change["range"], "text": change["newText"] });
    editor.notify(
        "textDocument/didChange",
        json!({ "textDocument": { "uri": uri, "version": 2 }, "contentChanges": [change] }),
    );
    let left = editor.diagnostics();
    assert!(left.iter().all(|d| d["severity"] != 1), "{left:?}");
    assert_eq!(editor.published.last().map(|p| p["version"].clone()), Some(json!(2)));
    let hover = editor.request("textDocument/hover", editor.at("w.pg", &right, "req_rate"));
    assert!(hover["contents"]["value"].as_str().expect("text").contains("Robot.req_rate: rate"));
    editor.end().exits(0);
}

#[test]
fn names_lead_to_files_that_are_included_and_to_bundled_ones() {
    let mut editor = Editor::start();
    editor.open("w.pg", WORKLOAD);
    let own = editor.request("textDocument/definition", editor.at("w.pg", WORKLOAD, "own, cnt"));
    assert_eq!(
        (own["uri"].as_str(), &own["range"]["start"]["character"]),
        (Some(&*editor.uri("own.pg")), &json!(8))
    );
    let bundled = editor.request("textDocument/definition", editor.at("w.pg", WORKLOAD, "cntImage"));
    let path = bundled["uri"].as_str().and_then(|uri| uri.strip_prefix("file://")).expect("a file");
    let line = bundled["range"]["start"]["line"].as_u64().expect("a line") as usize;
    let text = std::fs::read_to_string(path).expect("the bundled file");
    assert!(
        path.contains("/cache/") && text.lines().nth(line).expect("a line").starts_with("Content cntImage")
    );
    let included = editor.request("textDocument/definition", editor.at("w.pg", WORKLOAD, "own.pg"));
    assert_eq!(included["uri"].as_str(), Some(&*editor.uri("own.pg")));

    // What is typed in the included file counts, though it is not saved.
    editor.open("own.pg", "Content mine = { kind = \"own\"; size = const(1KB); cachable = 100%; };\n");
    while !editor.published.iter().any(|p| p.to_string().contains("`own` is not declared")) {
        editor.receive();
    }
    editor.end().exits(0);
}

#[test]
fn completion_outline_references_and_layout_are_there() {
    let mut editor = Editor::start();
    editor.open("w.pg", WORKLOAD);
    let labels = |completion: &Value| -> Vec<String> {
        let items = completion["items"].as_array().expect("a list");
        items.iter().map(|item| item["label"].as_str().expect("text").to_owned()).collect()
    };
    let at = editor.at("w.pg", WORKLOAD, "duration");
    let fields = editor.request("textDocument/completion", at);
    assert_eq!(labels(&fields), ["duration", "xactions", "fill_size", "errors"]);

    let of = json!({ "textDocument": { "uri": editor.uri("w.pg") } });
    let outline = editor.request("textDocument/documentSymbol", of.clone());
    let names: Vec<_> = outline.as_array().expect("a list").iter().map(|s| s["name"].as_str()).collect();
    assert_eq!(names, [Some("Peak"), Some("S"), Some("R"), Some("p")]);

    let at = editor.at("w.pg", WORKLOAD, "S.addresses");
    assert_eq!(editor.request("textDocument/references", at.clone()).as_array().map(Vec::len), Some(3));
    let rename = |name: &str| {
        let mut params = at.clone();
        params["newName"] = name.into();
        params
    };
    let renamed = editor.request("textDocument/rename", rename("Site"));
    let text = edited(WORKLOAD, &renamed["changes"][editor.uri("w.pg")]);
    assert!(text.contains("Server Site = {") && text.contains("use(Site, R)"), "{text}");
    let refused = editor.exchange("textDocument/rename", rename("every"));
    assert!(refused["error"]["message"].as_str().expect("text").contains("a name begins with"), "{refused}");

    let edits = editor.request("textDocument/formatting", of);
    editor.assay.file("laid-out.pg", WORKLOAD);
    editor.assay.run(&["fmt", "laid-out.pg"]).exits(0);
    let laid_out = crate::support::read(&editor.assay.path("laid-out.pg"));
    assert_eq!(edited(WORKLOAD, &edits), laid_out);
    assert_ne!(laid_out, WORKLOAD);
    editor.end().exits(0);
}

#[test]
fn what_is_no_session_ends_with_an_error_and_not_in_silence() {
    let assay = Assay::new();
    let talk = |text: &str| {
        let mut command = assay.command(&["lsp"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary starts");
        child.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("it is read");
        Said::from(child.wait_with_output().expect("an end"))
    };
    talk("GET / HTTP/1.1\r\nHost: a\r\n\r\n").exits(1).complains("language client");
    // The editor has died.
    talk("").exits(1);
    let said = talk("Content-Length: 3\r\n\r\n{]}").exits(1);
    assert!(said.stdout.contains("-32700"), "{said:?}");
    let request =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "textDocument/hover", "params": {} }).to_string();
    let said = talk(&format!("Content-Length: {}\r\n\r\n{request}", request.len())).exits(1);
    assert!(said.stdout.contains("-32002"), "{said:?}");
}
