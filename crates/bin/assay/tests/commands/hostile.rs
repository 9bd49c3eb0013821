//! Text that others chose, in every output: it is seen, and does nothing where it is shown. One list of texts goes through all.

use assay_base::quote::HOSTILE;
use serde_json::Value;

use crate::hostile_text::{assert_page, assert_tame, on_terminal, without_styles};
use crate::support::{Assay, read};

#[test]
fn what_clients_wrote_into_a_log_does_nothing_in_its_analysis() {
    let assay = Assay::new();
    let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace(['\n', '\r', '\0'], "");
    let line = |text: &str| {
        let (url, agent) = (quoted(text).replace([' ', '\t'], "+"), quoted(text));
        format!(
            "192.0.2.1 - - [10/Oct/2025:13:55:01 +0000] \"GET /{url} HTTP/1.1\" 404 5 \"{agent}\" \"{agent}\"\n"
        )
    };
    let log = assay.file("access.log", &HOSTILE.iter().map(|text| line(text)).collect::<String>());
    let document = assay.run(&["logs", log, "--json", "--html", "page.html"]).exits(0).stdout;
    assert!(serde_json::from_str::<Value>(&document).is_ok(), "{document}");
    assert_page(&read(&assay.path("page.html")), "logs");
    assert_tame(&without_styles(&on_terminal(&assay, &["logs", log])), "logs");
}

#[test]
fn a_message_about_what_others_named_is_one_message() {
    let assay = Assay::new();
    // Each run of the program is shown four of them.
    for texts in HOSTILE.chunks(4) {
        let text = texts.concat();
        let name = text.replace(['/', '\0'], "_");
        let outer = assay.path("outer");
        let inner = outer.join(&name);
        std::fs::create_dir_all(&inner).expect("a directory of its own");
        std::fs::write(inner.join("run.json"), "{]").expect("a directory of its own");
        let [inner, outer] = [&inner, &outer].map(|path| path.display().to_string());
        let missing = format!("./{name}");
        let settings =
            assay.file("settings.toml", &format!("[[proxy]]\n\"x\" = {}\nlisten = ]", Value::from(text)));
        for arguments in [
            &["report", &inner][..],
            &["report", &outer],
            &["report", &missing],
            &["compare", &inner],
            &["logs", &inner],
            &["logs", &missing],
            &["check", &missing],
            &["switch", &missing],
            &["switch", settings],
            &["lab", settings],
            &["spe", "report", &missing],
            &["policies", &missing],
            &["size", &missing],
            &["merge", &missing, &inner, "--out", "merged"],
            &["replay", "--urls", &missing, "--to", "127.0.0.1:9"],
            &["conform", &missing],
            &["conform", "builtin", "--case", &missing],
            &["conform", "builtin", "--cases", &missing],
            &["run", "demo", "--topology", &missing],
            &["run", "demo", "--proxy", &missing],
        ] {
            let said = assay.run(arguments);
            let case = format!("{arguments:?}");
            assert!(matches!(said.code, Some(0..=2)), "{case}: {said:?}");
            assert_tame(&said.stderr, &case);
            let begun = said.stderr.lines().filter(|line| line.starts_with("error: ")).count();
            assert_eq!(begun, usize::from(said.code != Some(0)), "{case}: {}", said.stderr);
        }
        std::fs::remove_dir_all(&outer).expect("is there");
    }
}
