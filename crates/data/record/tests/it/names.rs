//! The names of columns, journal fields and the proxy's counters: what analyses and other tools request.

use std::fmt::Write;

use assay_measurement::measured::Measured;
use serde_json::Value;

/// Compares with a file that is kept; `UPDATE_GOLDEN=1` rewrites it.
fn holds(file: &str, text: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(file);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == text, "{} differs; a name that is published stays", path.display());
}

#[test]
fn every_column_keeps_its_name_and_type() {
    let mut text = String::new();
    for table in assay_record::layout::tables() {
        for column in table.columns {
            writeln!(text, "{} {} {}", table.file, column.name, column.kind).unwrap();
        }
    }
    let tables = assay_record::spe::tables_as_markdown();
    let names = tables.lines().filter(|line| line.starts_with("### ") || line.starts_with("| `"));
    for line in names {
        let fields: Vec<&str> = line.split('|').map(str::trim).collect();
        writeln!(text, "spe {}", fields[..fields.len().min(3)].join(" ")).unwrap();
    }
    holds("columns.txt", &text);
}

#[test]
fn every_line_of_the_journal_keeps_its_fields() {
    let all = [
        Measured::Robots(Default::default()),
        Measured::Origins(Default::default()),
        Measured::Host(Default::default()),
        Measured::Proxy(Default::default()),
        Measured::Thread(Default::default()),
        Measured::Stall(Default::default()),
        Measured::Baseline(Default::default()),
        Measured::Network(Default::default()),
        Measured::Processors(vec![Default::default()]),
        Measured::Adapted(Default::default()),
        Measured::Machine(Default::default()),
        Measured::Disks(vec![Default::default()]),
        Measured::Interfaces(vec![Default::default()]),
        Measured::Blocks(vec![Default::default()]),
        Measured::Link(Default::default()),
    ];
    let mut text = String::new();
    for measured in all {
        fields("", &serde_json::to_value(measured).unwrap(), &mut text);
    }
    holds("journal.txt", &text);
}

/// The path to each field.
fn fields(path: &str, value: &Value, text: &mut String) {
    match value {
        Value::Object(inner) if !inner.is_empty() => {
            inner.iter().for_each(|(name, value)| fields(&format!("{path}/{name}"), value, text));
        }
        Value::Array(items) if !items.is_empty() => {
            items.iter().for_each(|item| fields(&format!("{path}/*"), item, text));
        }
        _ => writeln!(text, "{path}").unwrap(),
    }
}
