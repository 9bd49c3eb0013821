//! Access logs whose lines say different things.

use assay_logs::size::input::{ReadOptions, read};
use assay_logs::size::keys::LogRules;

#[test]
fn what_is_assumed_for_lines_without_methods_ends_where_the_log_names_fields_with_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("u_ex.log");
    let text = [
        "#Fields: date time cs-uri-stem sc-status sc-bytes\n",
        &"2025-10-10 13:00:00 /a 200 1000\n".repeat(4),
        "#Fields: date time cs-uri-stem sc-bytes sc-status cs-method\n",
        &"2025-10-10 13:00:01 /a 1000 200 GET\n".repeat(3),
        &"2025-10-10 13:00:02 /a 1000 200 POST\n".repeat(2),
    ];
    std::fs::write(&path, text.concat()).unwrap();
    let read = read(&[path], None, LogRules::default(), ReadOptions::default()).unwrap();
    let requests = &read.requests;
    assert_eq!((requests.list.len(), requests.uncachable, read.malformed), (9, 2, 0));
    let notes: Vec<_> = read.notes.iter().filter(|note| note.contains("no methods")).collect();
    assert_eq!(notes.len(), 1, "{:?}", read.notes);
}
