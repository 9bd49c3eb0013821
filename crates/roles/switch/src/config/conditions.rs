//! Parses the conditions of a class.

use assay_base::settings::{Fields, Mistake, Value};

use super::values::texts;
use crate::classes::{Condition, HeaderCondition, Pattern, QueryCondition};

pub(super) fn conditions(fields: &Fields<'_>) -> Result<Vec<Condition>, Mistake> {
    let mut conditions = Vec::new();
    let mut add = |key: &str, make: fn(Vec<String>) -> Condition| -> Result<(), Mistake> {
        let all = texts(fields, key)?;
        if !all.is_empty() {
            let all: Result<Vec<String>, Mistake> =
                all.iter().map(|value| value.text().map(str::to_owned)).collect();
            conditions.push(make(all?));
        }
        Ok(())
    };
    add("method", Condition::Method)?;
    add("path", Condition::Path)?;
    add("prefix", Condition::Prefix)?;
    add("suffix", Condition::Suffix)?;
    let patterns: Result<Vec<Pattern>, Mistake> = texts(fields, "regex")?.iter().map(pattern).collect();
    let patterns = patterns?;
    if !patterns.is_empty() {
        conditions.push(Condition::Regex(patterns));
    }
    let headers: Result<Vec<HeaderCondition>, Mistake> =
        texts(fields, "header")?.iter().map(header).collect();
    let headers = headers?;
    if !headers.is_empty() {
        conditions.push(Condition::Header(headers));
    }
    let queries: Result<Vec<QueryCondition>, Mistake> = texts(fields, "query")?.iter().map(query).collect();
    let queries = queries?;
    if !queries.is_empty() {
        conditions.push(Condition::Query(queries));
    }
    Ok(conditions)
}

fn pattern(value: &Value<'_>) -> Result<Pattern, Mistake> {
    Pattern::new(value.text()?).map_err(|why| value.wrong(&format!("this is no regular expression: {why}")))
}

/// Parses `"X-Kind"` or `"X-Kind: value"`.
fn header(value: &Value<'_>) -> Result<HeaderCondition, Mistake> {
    let text = value.text()?;
    let (name, wanted) = match text.split_once(':') {
        Some((name, wanted)) => (name.trim(), Some(wanted.trim().to_owned())),
        None => (text.trim(), None),
    };
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(value.wrong("a field is written like \"X-Kind\" or \"X-Kind: value\""));
    }
    Ok(HeaderCondition { name: name.to_owned(), value: wanted })
}

/// Parses `"debug"` or `"debug=1"`.
fn query(value: &Value<'_>) -> Result<QueryCondition, Mistake> {
    let text = value.text()?;
    let (name, wanted) = match text.split_once('=') {
        Some((name, wanted)) => (name, Some(wanted.to_owned())),
        None => (text, None),
    };
    if name.is_empty() {
        return Err(value.wrong("a part of a query is written like \"debug\" or \"debug=1\""));
    }
    Ok(QueryCondition { name: name.to_owned(), value: wanted })
}
