//! The time that the language server takes for a change and for each request, in a workload of so many lines.
//!
//! `cargo run --release -p assay-pgl --example response_time -- [LINES]`

use std::path::Path;
use std::time::{Duration, Instant};

use assay_pgl::lsp::{Host, Server};
use assay_pgl::{Files, Listing};
use serde_json::{Value, json};

/// Times that each is measured.
const ROUNDS: usize = 21;

struct Nothing;

impl Files for Nothing {
    fn text(&self, _path: &str) -> Result<Option<String>, String> {
        Ok(None)
    }

    fn list(&self, _path: &str) -> Result<Option<Listing>, String> {
        Ok(None)
    }

    fn bytes(&self, _path: &Path) -> Result<Vec<u8>, String> {
        Err("there is none".to_owned())
    }
}

impl Host for Nothing {
    fn bundled_path(&self, _base_name: &str) -> Option<String> {
        None
    }

    fn absolute(&self, path: &str) -> String {
        format!("/{}", path.trim_start_matches('/'))
    }
}

/// A content type, a server and robots for each of many sites.
fn workload(lines: usize) -> String {
    let mut text = String::from("#include \"contents.pg\"\n");
    for n in 0..lines / 16 {
        let (a, b) = (n / 250, 1 + n % 250);
        text.push_str(&format!(
            "// Site {n}.\nContent image{n} = {{\n    kind = \"image {n}\";\n    size = exp({}KB);\n    cachable = 80%;\n}};\n\
             Server S{n} = {{\n    contents = [ image{n}: 80%, cntHTML ];\n    addresses = ['10.{a}.1.{b}:80'];\n}};\n\
             Robot R{n} = {{\n    origins = S{n}.addresses;\n    addresses = ['10.{a}.2.{b}'];\n    req_rate = 0.4/sec;\n}};\n\
             use(S{n}, R{n});\n",
            1 + n % 40,
        ));
    }
    text + "Phase top = { name = \"top\"; goal.duration = 1hour; };\nschedule(top);\n"
}

fn main() {
    let lines = std::env::args().nth(1).map_or(5000, |lines| lines.parse().expect("LINES is a number"));
    let text = workload(lines);
    let mut server = Server::new(Nothing, vec![]);
    let document = json!({ "uri": "file:///w.pg", "version": 1 });
    let send = |server: &mut Server<Nothing>, message: Value| server.receive(message.to_string().as_bytes());
    send(&mut server, json!({ "id": 0, "method": "initialize", "params": {} }));
    let item = json!({ "uri": "file:///w.pg", "languageId": "pgl", "version": 1, "text": text });
    send(&mut server, json!({ "method": "textDocument/didOpen", "params": { "textDocument": item } }));
    let errors = server.settle()[0]["params"]["diagnostics"].as_array().map_or(0, Vec::len);
    println!("{} lines, {} bytes, {errors} diagnostics", text.lines().count(), text.len());

    let line = text.lines().position(|line| line.starts_with("    req_rate")).expect("a rate") as u64;
    let middle = text.lines().count() as u64 / 32 * 16 + line % 16;
    let at = json!({ "line": middle, "character": 6 });
    println!("{:32} {:>10} {:>10}", "", "median", "longest");
    let mut measure = |name: &str, one: &mut dyn FnMut(&mut Server<Nothing>) -> usize| {
        let mut times: Vec<Duration> = (0..ROUNDS)
            .map(|_| {
                let start = Instant::now();
                assert!(one(&mut server) > 0);
                start.elapsed()
            })
            .collect();
        times.sort_unstable();
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        println!("{name:32} {:>7.2} ms {:>7.2} ms", ms(times[ROUNDS / 2]), ms(times[ROUNDS - 1]));
    };
    measure("a key is pressed: diagnostics", &mut |server| {
        let range = json!({ "start": at, "end": at });
        let params = json!({ "textDocument": document, "contentChanges": [{ "range": range, "text": " " }] });
        send(server, json!({ "method": "textDocument/didChange", "params": params }));
        server.settle().len()
    });
    for method in
        ["hover", "completion", "definition", "references", "documentSymbol", "codeAction", "formatting"]
    {
        let range = json!({ "start": at, "end": at });
        let params = json!({ "textDocument": document, "position": at, "range": range });
        measure(method, &mut |server| {
            let method = format!("textDocument/{method}");
            send(server, json!({ "id": 1, "method": method, "params": params })).len()
        });
    }
}
