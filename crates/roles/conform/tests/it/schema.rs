//! Whether documents are what a schema says.

use serde_json::Value;

/// What is not.
pub fn errors(schema: &Value, value: &Value) -> Vec<String> {
    let validator = jsonschema::validator_for(schema).unwrap();
    validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect()
}
