//! Comparison of JSON documents, with some values ignored.

use serde_json::Value;
use thiserror::Error;

/// A path with an empty key.
#[derive(Debug, Error)]
#[error("`{text}` is no path; write keys joined by dots, like `items.*.id`")]
pub struct JsonPathError {
    text: String,
}

/// Location of a value: `server.time`, `items.*.id`; `*` matches any key and any index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonPath(Vec<String>);

impl JsonPath {
    /// Parses keys joined by dots.
    pub fn parse(text: &str) -> Result<Self, JsonPathError> {
        let keys: Vec<String> = text.split('.').map(str::to_owned).collect();
        if keys.iter().any(String::is_empty) {
            return Err(JsonPathError { text: text.to_owned() });
        }
        Ok(Self(keys))
    }
}

/// Whether both documents are equal without the values at these paths. `None` if one is not JSON.
pub fn are_same(one: &[u8], other: &[u8], ignored: &[JsonPath]) -> Option<bool> {
    let parse = |bytes| -> Option<Value> {
        let mut value = serde_json::from_slice(bytes).ok()?;
        ignored.iter().for_each(|path| remove(&mut value, &path.0));
        Some(value)
    };
    Some(parse(one)? == parse(other)?)
}

fn remove(value: &mut Value, path: &[String]) {
    let Some((key, rest)) = path.split_first() else { return };
    match value {
        Value::Object(fields) if rest.is_empty() && key == "*" => fields.clear(),
        Value::Object(fields) if rest.is_empty() => {
            fields.remove(key);
        }
        Value::Object(fields) if key == "*" => fields.values_mut().for_each(|inner| remove(inner, rest)),
        Value::Object(fields) => fields.get_mut(key).into_iter().for_each(|inner| remove(inner, rest)),
        // Other items keep their index.
        Value::Array(items) => {
            let wanted = key.parse::<usize>().ok();
            let named = items.iter_mut().enumerate().filter(|(at, _)| key == "*" || wanted == Some(*at));
            for (_, item) in named {
                if rest.is_empty() {
                    *item = Value::Null;
                } else {
                    remove(item, rest);
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(one: &str, other: &str, ignored: &[&str]) -> Option<bool> {
        let paths: Vec<JsonPath> = ignored.iter().map(|path| JsonPath::parse(path).unwrap()).collect();
        are_same(one.as_bytes(), other.as_bytes(), &paths)
    }

    #[test]
    fn order_and_space_of_fields_mean_nothing_in_json() {
        assert_eq!(same("{\"a\":1, \"b\":[1,2]}", "{\"b\":[1,2],\"a\":1}", &[]), Some(true));
        assert_eq!(same("[1,2]", "[2,1]", &[]), Some(false));
        assert_eq!(same("{", "{}", &[]), None);
    }

    #[test]
    fn what_is_ignored_may_differ_or_be_missing() {
        let (one, other) = ("{\"a\":{\"t\":1,\"x\":2}}", "{\"a\":{\"t\":9,\"x\":2}}");
        assert_eq!(same(one, other, &[]), Some(false));
        assert_eq!(same(one, other, &["a.t"]), Some(true));
        assert_eq!(same(one, "{\"a\":{\"x\":2}}", &["a.t"]), Some(true));
        assert_eq!(same("[{\"id\":1,\"v\":2}]", "[{\"id\":7,\"v\":2}]", &["*.id"]), Some(true));
        assert_eq!(same("[{\"id\":1,\"v\":2}]", "[{\"id\":7,\"v\":3}]", &["*.id"]), Some(false));
        assert_eq!(same("[1,2,3]", "[9,2,3]", &["0"]), Some(true));
    }

    #[test]
    fn a_path_without_a_key_is_refused() {
        assert!(JsonPath::parse("a..b").is_err() && JsonPath::parse("").is_err());
    }
}
