//! The reference of doubts says what the judge does.

use std::path::Path;

const BEGIN: &str =
    "<!-- reasons: made from the code; UPDATE_GOLDEN=1 cargo test -p assay-host rewrites them -->\n";
const END: &str = "<!-- end of reasons -->";

#[test]
fn the_reference_page_lists_every_reason_with_its_thresholds() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/reference/doubts.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let begin = page.find(BEGIN).expect("the page marks where its reasons begin") + BEGIN.len();
    let end = page.find(END).expect("the page marks where its reasons end");
    let reasons = format!("\n{}", assay_host::verdict::limits::reasons_markdown());
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, format!("{}{reasons}{}", &page[..begin], &page[end..])).unwrap();
        return;
    }
    assert!(page[begin..end] == reasons, "docs/reference/doubts.md is out of date: run with UPDATE_GOLDEN=1");
}
