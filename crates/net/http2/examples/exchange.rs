//! How fast both sides of a connection are: requests that are encoded and decoded, and their responses, in memory.
//! `cargo run --release --package assay-http2 --example exchange [REQUESTS]`.
//!
//! Each request has the fields of a robot's, and each response those of an origin's with 1 KB of body; ten are under way at a
//! time. Prints requests a second of one processor, and what the headers of a request and of a response come to.
//! Under callgrind, the difference of two runs with different numbers of requests is what one request takes.

use std::error::Error;
use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant;

use assay_http2::{Config, Connection, Event, RequestHead};

/// Requests under way at a time.
const AT_ONCE: u64 = 10;
const BODY: [u8; 1024] = [b'x'; 1024];

fn main() -> ExitCode {
    let requests = std::env::args().nth(1).map_or(Ok(1_000_000), |text| text.parse());
    let done = requests.map_err(Into::into).and_then(exchange);
    if let Err(error) = done {
        eprintln!("{error}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn exchange(requests: u64) -> Result<(), Box<dyn Error>> {
    let (mut client, mut server) =
        (Connection::client(Config::default()), Connection::server(Config::default()));
    let begun = Instant::now();
    let (mut next, mut done, mut path, mut mark) = (0, 0, Vec::new(), Vec::new());
    while done < requests {
        while next < requests && next - done < AT_ONCE {
            next += 1;
            write(&mut path, format_args!("/w00000001/t01/00_{:016x}.html", next * 0x9e37_79b9));
            write(&mut mark, format_args!("{}-{next}-0-0-b", next % 100));
            let head =
                RequestHead { method: b"GET", scheme: b"http", authority: b"10.1.0.1:9000", path: &path };
            let fields = [(&b"X-Assay"[..], &mark[..]), (b"Accept", b"*/*")];
            client.request(&head, fields.into_iter(), true)?;
        }
        respond(&mut client, &mut server, &mut mark)?;
        server.refill();
        done += take_responses(&mut client, &mut server)?;
    }
    let seconds = begun.elapsed().as_secs_f64();
    let (totals, count) = (client.totals(), requests as f64);
    println!("{:.0} requests a second", count / seconds);
    println!(
        "fields of a request: {:.1} bytes, coded {:.1}; of a response: {:.1}, coded {:.1}",
        totals.fields_sent_bytes as f64 / count,
        totals.coded_sent_bytes as f64 / count,
        totals.fields_received_bytes as f64 / count,
        totals.coded_received_bytes as f64 / count,
    );
    Ok(())
}

fn write(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    use std::io::Write;
    out.clear();
    // A vector takes everything.
    let _ = out.write_fmt(text);
}

/// The server takes what the client has sent, and responds.
fn respond(
    client: &mut Connection,
    server: &mut Connection,
    mark: &mut Vec<u8>,
) -> Result<(), Box<dyn Error>> {
    let mut at = 0;
    loop {
        let (used, event) = server.next(&client.output()[at..])?;
        at += used;
        match event {
            Event::NeedMore => break,
            Event::Head { stream, head, .. } => {
                black_box((head.path(), head.field("x-assay")));
                write(mark, format_args!("1-{}-0-{:016x}-0-{}-200", stream.id, stream.id, stream.id * 7));
                let fields = [
                    (&b"Date"[..], &b"Sun, 06 Nov 1994 08:49:37 GMT"[..]),
                    (b"Last-Modified", b"Sun, 06 Nov 1994 08:49:36 GMT"),
                    (b"Cache-Control", b"public"),
                    (b"Content-Type", b"text/html"),
                    (b"Content-Length", b"1024"),
                    (b"X-Assay", mark),
                ];
                server.respond(stream, 200, fields.into_iter(), false)?;
                server.data(stream, &BODY, true)?;
            }
            _ => {}
        }
    }
    client.wrote(at);
    Ok(())
}

/// The client takes what the server has sent: how many responses are complete.
fn take_responses(client: &mut Connection, server: &mut Connection) -> Result<u64, Box<dyn Error>> {
    let (mut at, mut complete) = (0, 0);
    loop {
        let (used, event) = client.next(&server.output()[at..])?;
        at += used;
        match event {
            Event::NeedMore => break,
            Event::Head { head, .. } => drop(black_box((head.status(), head.field("x-assay")))),
            Event::Data { data, ends, .. } => {
                black_box(data);
                complete += u64::from(ends);
            }
            _ => {}
        }
    }
    server.wrote(at);
    Ok(complete)
}
