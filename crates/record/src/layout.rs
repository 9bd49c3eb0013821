//! What the tables of a run directory hold, for people.

use std::fmt::Write;

use crate::columns::{SERIES, TableSpec, XACTS};

/// The tables of a run directory as Markdown, a section each. The reference page holds this text.
pub fn tables_as_markdown() -> String {
    let mut text = String::new();
    for table in SERIES.into_iter().chain([&XACTS]) {
        section(&mut text, table);
    }
    text
}

fn section(text: &mut String, table: &TableSpec) {
    // Writing to a string cannot fail.
    let _ =
        write!(text, "### {}\n\n{}\n\n| column | type | meaning |\n|---|---|---|\n", table.file, table.about);
    for column in (table.columns)() {
        let _ = writeln!(text, "| `{}` | {} | {} |", column.name, column.kind_name(), column.about);
    }
    text.push('\n');
}
