//! Runs `assay role robots` by hand: `cargo run --release --example robots SPEC.json`.
//!
//! Speaks as the role does: prints `ready`, takes `{"command":"start",…}` and `{"command":"stop"}` on standard input, and
//! reports events on standard output until it is done.

use std::error::Error;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let done = match &args[..] {
        [spec] => serve(spec),
        _ => Err("usage: robots SPEC.json".into()),
    };
    if let Err(error) = done {
        eprintln!("{error}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn serve(spec: &str) -> Result<(), Box<dyn Error>> {
    Ok(assay_load::robot::run(serde_json::from_slice(&std::fs::read(spec)?)?)?)
}
