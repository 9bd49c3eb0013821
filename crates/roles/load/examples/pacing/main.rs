//! The programs that `scripts/pacing.sh` measures pacing with: `pacing COMMAND ...`.
//!
//! - `count UNIVERSE.json` counts the launches of a workload's stream, without a run;
//! - `due UNIVERSE.json OUT` writes when each of them is due;
//! - `origin UNIVERSE.json ADDR OUT` responds to all requests with 1 KB and writes when each arrived;
//! - `timer DUE START_NS OUT` is a bare timer: it sleeps until each deadline and writes when it woke, nothing else;
//! - `sender DUE START_NS ADDR OUT` does the same and writes a request at each: the least that a generator must do;
//! - `ticks ADDR RATE CONNECTIONS START_NS SECONDS OUT` paces as wrk2 does.
//!
//! Files are rows of two numbers, 64 bits each, little endian: which request, and when, in nanoseconds. Requests are
//! numbered as in [`origin`]; instants are of `CLOCK_MONOTONIC`, in the file of `due` since the start.

mod due;
mod origin;
mod sender;
mod sys;
mod ticks;
mod timer;

use std::error::Error;
use std::process::ExitCode;

const USAGE: &str = "usage: pacing count UNIVERSE.json | due UNIVERSE.json OUT | origin UNIVERSE.json ADDR OUT \
                     | timer DUE START_NS OUT | sender DUE START_NS ADDR OUT \
                     | ticks ADDR RATE CONNECTIONS START_NS SECONDS OUT";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    if let Err(error) = run(&args) {
        eprintln!("{error}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn run(args: &[&str]) -> Result<(), Box<dyn Error>> {
    match args {
        ["count", spec] => due::count(spec),
        ["due", spec, out] => due::write(spec, out),
        ["origin", spec, address, out] => origin::serve(spec, address.parse()?, out),
        ["timer", due, start_ns, out] => timer::run(due, start_ns.parse()?, out),
        ["sender", due, start_ns, address, out] => sender::run(due, start_ns.parse()?, address.parse()?, out),
        ["ticks", address, rate, connections, start_ns, seconds, out] => {
            let job = ticks::Job {
                address: address.parse()?,
                rate: rate.parse()?,
                connections: connections.parse()?,
                start_ns: start_ns.parse()?,
                seconds: seconds.parse()?,
            };
            ticks::run(&job, out)
        }
        _ => Err(USAGE.into()),
    }
}
