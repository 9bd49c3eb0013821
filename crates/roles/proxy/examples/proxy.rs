//! Runs the built-in proxy by hand, until its standard input ends: `cargo run --example proxy -- SPEC.json`.
//!
//! ```json
//! { "listen": "127.0.0.1:8080", "threads": 1, "cpus": [], "memory_bytes": 100000000,
//!   "origins": [{ "authority": "example.test", "address": "127.0.0.1:8000" }] }
//! ```

use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(path) = std::env::args().nth(1) else {
        eprintln!("usage: proxy SPEC.json");
        return ExitCode::from(2);
    };
    let spec = std::fs::read(&path)
        .map_err(|error| error.to_string())
        .and_then(|text| serde_json::from_slice(&text).map_err(|error| error.to_string()));
    let run = match spec {
        Ok(spec) => assay_proxy::run(spec).map_err(|error| error.to_string()),
        Err(error) => Err(format!("{path}: {error}")),
    };
    match run {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
