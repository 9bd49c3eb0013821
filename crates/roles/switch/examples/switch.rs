//! Runs a switch by hand, until its standard input ends: `cargo run --example switch -- SWITCH.toml`. For measurements that want
//! the switch and nothing else: `valgrind --tool=callgrind target/release/examples/switch SWITCH.toml`.

use std::process::ExitCode;

use assay_switch::Switch;

fn main() -> ExitCode {
    let Some(path) = std::env::args().nth(1) else {
        eprintln!("usage: switch SWITCH.toml");
        return ExitCode::from(2);
    };
    match serve(&path) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn serve(path: &str) -> Result<(), Box<dyn std::error::Error>> {
    let config = assay_switch::read(path, &std::fs::read_to_string(path)?)?;
    let mut switch = Switch::start(config)?;
    eprintln!("listens on {:?}", switch.addresses());
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
    switch.stop();
    Ok(switch.wait()?)
}
