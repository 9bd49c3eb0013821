//! The cost of a request that has a connection to itself, if nobody looks at it. `bare_loop ADDRESS PATH SECONDS`.
//!
//! Connects, writes, reads to the end, closes, and begins again: what a load generator must do at least. Prints how many
//! requests it made and how much processor time they took, in microseconds.

use std::error::Error;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let done = match &args[..] {
        [address, path, seconds] => run(address, path, seconds),
        _ => Err("usage: bare_loop ADDRESS PATH SECONDS".into()),
    };
    match done {
        Ok((requests, used_us)) => println!("{requests} {used_us}"),
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn run(address: &str, path: &str, seconds: &str) -> Result<(u64, u128), Box<dyn Error>> {
    let address: SocketAddr = address.parse()?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    let end = Instant::now() + Duration::from_secs(seconds.parse()?);
    let mut room = vec![0; 64 * 1024];
    let mut requests = 0;
    while Instant::now() < end {
        let mut stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.write_all(request.as_bytes())?;
        while stream.read(&mut room)? > 0 {}
        requests += 1;
    }
    let used = clock_gettime(ClockId::ProcessCPUTime);
    Ok((requests, used.tv_sec as u128 * 1_000_000 + used.tv_nsec as u128 / 1_000))
}
