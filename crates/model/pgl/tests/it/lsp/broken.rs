//! Whatever is in a document, every request has a response.

use std::path::Path;

use assay_pgl::lsp::{Host, Server};
use assay_pgl::{FileError, Files, Listing};
use serde_json::{Value, json};

/// Variants that are tried.
const VARIANTS: u64 = 300;

/// A machine without files.
struct NoFiles;

impl Files for NoFiles {
    fn text(&self, _path: &str) -> Result<Option<String>, FileError> {
        Ok(None)
    }

    fn list(&self, _path: &str) -> Result<Option<Listing>, FileError> {
        Ok(None)
    }

    fn bytes(&self, _path: &Path) -> Result<Vec<u8>, FileError> {
        Err(FileError::Gone)
    }
}

impl Host for NoFiles {
    fn bundled_path(&self, base_name: &str) -> Option<String> {
        Some(format!("/bundled/{base_name}"))
    }

    fn absolute(&self, path: &str) -> String {
        format!("/{}", path.trim_start_matches('/'))
    }
}

/// A small generator, so that a failing variant can be made again from its number.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % sides.max(1)
    }
}

/// The workloads that come with Assay.
fn workloads() -> Vec<String> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../workloads");
    let mut paths: Vec<_> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let texts: Vec<_> = paths.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
    assert!(texts.len() > 20);
    texts
}

/// A place of a text as the protocol counts it.
fn position(text: &str, offset: usize) -> Value {
    let start = text[..offset].rfind('\n').map_or(0, |at| at + 1);
    let line = text[..offset].matches('\n').count();
    json!({ "line": line, "character": text[start..offset].encode_utf16().count() })
}

/// An offset at the border of a character.
fn border(text: &str, dice: &mut Dice) -> usize {
    let mut at = dice.roll(text.len() + 1);
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// A change as an editor sends it, and the text after it.
fn changed(text: &str, dice: &mut Dice) -> (Value, String) {
    const TYPED: [&str; 16] = [
        "",
        "{",
        "}",
        "[",
        "\"",
        "'",
        ";",
        "/*",
        "//",
        ".",
        "=",
        "99999999999",
        "é\u{1f600}",
        "\n",
        "#include \"x\"\n",
        "every ",
    ];
    let mut start = border(text, dice);
    let mut end = if dice.roll(3) == 0 { border(text, dice) } else { (start + dice.roll(9)).min(text.len()) };
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    if end < start {
        std::mem::swap(&mut start, &mut end);
    }
    let typed = TYPED[dice.roll(TYPED.len())];
    let change =
        json!({ "range": { "start": position(text, start), "end": position(text, end) }, "text": typed });
    (change, format!("{}{typed}{}", &text[..start], &text[end..]))
}

fn send(server: &mut Server<NoFiles>, message: &Value) -> Vec<Value> {
    server.receive(message.to_string().as_bytes())
}

fn notify(server: &mut Server<NoFiles>, method: &str, params: Value) {
    let responses = send(server, &json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    assert!(responses.is_empty() || method == "textDocument/didClose", "{responses:?}");
}

#[test]
fn broken_variants_of_the_workloads_have_a_response_to_every_request() {
    let mut server = Server::new(NoFiles, vec![]);
    send(&mut server, &json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {} }));
    let workloads = workloads();
    let (mut wrong, mut hovers, mut offers) = (0, 0, 0);
    for variant in 0..VARIANTS {
        let mut dice = Dice(variant);
        let mut text = workloads[dice.roll(workloads.len())].clone();
        let uri = format!("file:///w{variant}.pg");
        let of = json!({ "uri": uri, "version": 1 });
        let item = json!({ "uri": uri, "languageId": "pgl", "version": 1, "text": text });
        notify(&mut server, "textDocument/didOpen", json!({ "textDocument": item }));
        for _ in 0..=dice.roll(4) {
            let (change, after) = changed(&text, &mut dice);
            let params = json!({ "textDocument": of, "contentChanges": [change] });
            notify(&mut server, "textDocument/didChange", params);
            text = after;
        }
        let published = server.publish();
        assert_eq!(published.len(), 1, "variant {variant}");
        let found = published[0]["params"]["diagnostics"].as_array().expect("a list");
        wrong += usize::from(found.iter().any(|diagnostic| diagnostic["severity"] == 1));
        let lines = text.matches('\n').count() as u64;
        assert!(found.iter().all(|d| d["range"]["end"]["line"].as_u64().is_some_and(|line| line <= lines)));

        let place = position(&text, border(&text, &mut dice));
        for method in [
            "hover",
            "completion",
            "definition",
            "references",
            "documentHighlight",
            "rename",
            "documentSymbol",
            "codeAction",
            "formatting",
        ] {
            let params = json!({
                "textDocument": of,
                "position": place,
                "range": { "start": { "line": 0, "character": 0 }, "end": place },
                "newName": "other",
            });
            let method = format!("textDocument/{method}");
            let responses =
                send(&mut server, &json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }));
            let refused = &responses[0]["error"]["code"];
            assert!(refused.is_null() || method.ends_with("rename"), "variant {variant}: {responses:?}");
            hovers += usize::from(method.ends_with("hover") && responses[0]["result"].is_object());
            let items = responses[0]["result"]["items"].as_array();
            offers +=
                usize::from(method.ends_with("completion") && items.is_some_and(|items| !items.is_empty()));
        }
        notify(&mut server, "textDocument/didClose", json!({ "textDocument": of }));
    }
    // Most are broken, and yet there is something to say about many.
    let least = VARIANTS as usize / 5;
    assert!(wrong > 3 * least && hovers > least && offers > least, "{wrong} {hovers} {offers}");
}
