//! A small server that responds correctly, and robots against it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use assay_http::head::RequestHead;
use assay_load::spec::Target;
use assay_protocol::clock::RunClock;
use assay_workload::model::Workload;
use assay_workload::{Universe, UniverseOptions};

use crate::expected::Right;
use crate::harness::{Reported, SEED, Setting, perform, start_soon};

/// Runs a workload's robots against a server. `change` says what they do differently from the usual.
pub fn run(workload: &Workload, change: impl FnOnce(&mut Setting)) -> Reported {
    let clock = start_soon();
    let mut setting = Setting::to(Target::Reverse { proxy: start(workload, clock) });
    change(&mut setting);
    perform(workload, clock, setting)
}

/// Starts a server that ends with the process; gives where it listens.
pub fn start(workload: &Workload, clock: RunClock) -> SocketAddr {
    let universe = Universe::new(Arc::new(workload.clone()), SEED, 1, UniverseOptions::default());
    let universe = Arc::new(universe.expect("is valid"));
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has ports");
    let address = listener.local_addr().expect("it is bound");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let universe = Arc::clone(&universe);
            std::thread::spawn(move || serve(stream, &universe, clock));
        }
    });
    address
}

/// Serves one connection; none: it ended.
fn serve(mut stream: TcpStream, universe: &Universe, clock: RunClock) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let (mut buffer, mut piece) = (Vec::new(), [0; 8192]);
    loop {
        while let Some((head, length)) = RequestHead::parse(&buffer).expect("robots speak HTTP") {
            let right = Right::to(&head, universe, &clock);
            let mut out = right.start(true, &clock);
            if right.mark.not_modified() {
                out.extend_from_slice(b"\r\n");
            } else {
                let body = right.body(universe);
                out.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
                out.extend_from_slice(if head.method == "HEAD" { &[] } else { &body });
            }
            let closes = head.header("Connection") == Some(b"close");
            stream.write_all(&out).ok()?;
            if closes {
                return None;
            }
            buffer.drain(..length);
        }
        let length = stream.read(&mut piece).ok().filter(|length| *length > 0)?;
        buffer.extend_from_slice(&piece[..length]);
    }
}
