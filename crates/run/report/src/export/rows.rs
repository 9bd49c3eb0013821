//! A row as CSV, and as a line of JSON.

use std::io::{self, Write};

use assay_base::quote::csv::quoted;
use assay_record::table::Cell;

use super::TableForm;

/// Writes rows of one table.
pub(super) struct RowWriter<'a> {
    form: TableForm,
    /// Names as JSON strings.
    names: Vec<String>,
    out: &'a mut dyn Write,
}

impl<'a> RowWriter<'a> {
    /// Begins a table: CSV has a line of names.
    pub(super) fn new(form: TableForm, names: &[&str], out: &'a mut dyn Write) -> io::Result<Self> {
        if form == TableForm::Csv {
            let names: Vec<String> = names.iter().map(|name| quoted(name)).collect();
            writeln!(out, "{}", names.join(","))?;
        }
        let names = names.iter().map(|name| serde_json::Value::from(*name).to_string()).collect();
        Ok(Self { form, names, out })
    }

    pub(super) fn row(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        let mut line = String::new();
        for (index, cell) in cells.iter().enumerate() {
            if index > 0 {
                line.push(',');
            }
            if self.form == TableForm::JsonLines {
                line.push_str(if index == 0 { "{" } else { "" });
                line.push_str(self.names.get(index).map_or("\"\"", String::as_str));
                line.push(':');
                line.push_str(&json(*cell));
            } else {
                line.push_str(&csv(*cell));
            }
        }
        if self.form == TableForm::JsonLines {
            line.push_str(if cells.is_empty() { "{}" } else { "}" });
        }
        line.push('\n');
        self.out.write_all(line.as_bytes())
    }
}

fn csv(cell: Cell<'_>) -> String {
    match cell {
        Cell::Null => String::new(),
        Cell::Uint(value) => value.to_string(),
        Cell::Int(value) => value.to_string(),
        Cell::Float(value) if !value.is_finite() => String::new(),
        Cell::Float(value) => value.to_string(),
        // Two quotes are an empty text, nothing is null.
        Cell::Text("") => "\"\"".to_owned(),
        Cell::Text(text) => quoted(text),
        Cell::Bool(value) => value.to_string(),
    }
}

fn json(cell: Cell<'_>) -> String {
    match cell {
        Cell::Null => "null".to_owned(),
        Cell::Text(text) => serde_json::Value::from(text).to_string(),
        // A number that is none is null.
        Cell::Float(value) => serde_json::Value::from(value).to_string(),
        other => csv(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(form: TableForm) -> String {
        let mut out = Vec::new();
        let mut writer = RowWriter::new(form, &["n", "a \"name\", quoted", "x"], &mut out).unwrap();
        writer.row(&[Cell::Uint(u64::MAX), Cell::Text("two\nlines, \"one\" comma"), Cell::Null]).unwrap();
        writer.row(&[Cell::Int(-1), Cell::Text(""), Cell::Float(0.1)]).unwrap();
        writer.row(&[Cell::Bool(true), Cell::Text("é"), Cell::Float(f64::NAN)]).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn text_with_commas_quotes_and_line_ends_is_one_field() {
        let text = write(TableForm::Csv);
        assert_eq!(
            text,
            "n,\"a \"\"name\"\", quoted\",x\n18446744073709551615,\"two\nlines, \"\"one\"\" comma\",\n-1,\"\",0.1\ntrue,é,\n"
        );
    }

    #[test]
    fn text_that_begins_like_a_formula_is_text() {
        for text in ["=1+1", "+1", "-cmd", "@SUM(A1)", "\t=1", "\r=1"] {
            assert_eq!(csv(Cell::Text(text)).trim_matches('"'), format!("'{text}"));
        }
        assert_eq!((csv(Cell::Text("/a=b")), csv(Cell::Int(-1))), ("/a=b".into(), "-1".into()));
    }

    #[test]
    fn every_line_is_a_json_object_with_all_columns() {
        let lines: Vec<serde_json::Value> =
            write(TableForm::JsonLines).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 3);
        assert_eq!(lines[0]["n"], u64::MAX);
        assert_eq!(lines[0]["a \"name\", quoted"], "two\nlines, \"one\" comma");
        assert_eq!(lines[0]["x"], serde_json::Value::Null);
        assert_eq!(lines[2]["x"], serde_json::Value::Null);
    }
}
