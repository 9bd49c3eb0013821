//! The reference page says what the files hold.

use std::path::Path;

const BEGIN: &str =
    "<!-- tables: made from the code; UPDATE_GOLDEN=1 cargo test -p assay-record rewrites them -->\n";
const END: &str = "<!-- end of tables -->";

#[test]
fn the_reference_page_lists_every_column_of_every_table() {
    holds("run-directory.md", &assay_record::layout::tables_as_markdown());
}

#[test]
fn the_page_on_evaluations_lists_every_column_of_their_tables() {
    holds("spe.md", &assay_record::spe::tables_as_markdown());
}

fn holds(name: &str, tables: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/reference").join(name);
    let page = std::fs::read_to_string(&path).unwrap();
    let begin = page.find(BEGIN).expect("the page marks where its tables begin") + BEGIN.len();
    let end = page.find(END).expect("the page marks where its tables end");
    let tables = format!("\n{tables}");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, format!("{}{tables}{}", &page[..begin], &page[end..])).unwrap();
        return;
    }
    assert!(page[begin..end] == tables, "docs/reference/{name} is out of date: run with UPDATE_GOLDEN=1");
}

#[test]
fn the_reference_page_names_every_part_of_the_directory() {
    let page = include_str!("../../../../../docs/reference/run-directory.md");
    let dir = tempfile::tempdir().unwrap();
    let dir = assay_record::dir::RunDir::create(dir.path()).unwrap();
    let parts = [
        dir.info_path(),
        dir.workload_path(),
        dir.proxy_dir(),
        dir.journal_path(),
        dir.xacts_path(),
        dir.checksums_path(),
        dir.examples_path(),
        dir.report_path(),
        dir.summary_path(),
    ];
    for part in parts {
        let name = part.file_name().unwrap().to_string_lossy().into_owned();
        assert!(page.contains(&format!("`{name}")), "{name} is missing");
    }
}
