//! The summary as a table: a row per phase and figure.

use std::io::{self, Write};

use assay_record::table::Cell;
use serde_json::Value;

use super::TableForm;
use super::rows::RowWriter;

/// Writes the figures of the whole run (`total`), of each phase, and of Assay itself (`health`).
pub(super) fn write(summary: &Value, form: TableForm, out: &mut dyn Write) -> io::Result<()> {
    let mut writer = RowWriter::new(form, &["phase", "figure", "value"], out)?;
    let mut part = |name: &str, value: &Value| -> io::Result<()> {
        let mut figures = Vec::new();
        flatten("", value, &mut figures);
        for (figure, value) in &figures {
            writer.row(&[Cell::Text(name), Cell::Text(figure), Cell::Float(*value)])?;
        }
        Ok(())
    };
    part("total", &summary["total"])?;
    for phase in summary["phases"].as_array().into_iter().flatten() {
        part(phase["name"].as_str().unwrap_or_default(), phase)?;
    }
    part("health", &summary["health"])
}

/// Every number with its path: `response_time_ms.hit.p99`. A lower bound has a row that says so:
/// `response_time_ms.all.at_least.p99` is 1.
fn flatten(path: &str, value: &Value, figures: &mut Vec<(String, f64)>) {
    let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    match value {
        Value::Array(names) if path.ends_with(".at_least") => {
            figures.extend(names.iter().filter_map(Value::as_str).map(|name| (below(name), 1.0)));
        }
        Value::Object(fields) => {
            fields.iter().for_each(|(name, value)| flatten(&below(name), value, figures))
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(n, value)| flatten(&below(&n.to_string()), value, figures));
        }
        Value::Number(number) => figures.extend(number.as_f64().map(|number| (path.to_owned(), number))),
        _ => {}
    }
}
