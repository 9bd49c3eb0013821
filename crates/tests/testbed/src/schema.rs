//! Documents held against their schemas.

use boon::{Compiler, Schemas, ValidationError};
use serde_json::Value;

/// What a JSON Schema finds wrong with a document. Panics if the schema itself is none.
pub fn violations(schema: &Value, document: &Value) -> Vec<String> {
    const NAME: &str = "document";
    let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
    compiler.add_resource(NAME, schema.clone()).expect("the name is a URL");
    let index =
        compiler.compile(NAME, &mut schemas).unwrap_or_else(|error| panic!("not a schema: {error:#}"));
    let mut found = Vec::new();
    if let Err(error) = schemas.validate(document, index) {
        collect(&error, &mut found);
    }
    found
}

/// The causes that have none themselves.
fn collect(error: &ValidationError<'_, '_>, found: &mut Vec<String>) {
    if error.causes.is_empty() {
        found.push(format!("{}: {}", error.instance_location, error.kind));
    }
    error.causes.iter().for_each(|cause| collect(cause, found));
}
