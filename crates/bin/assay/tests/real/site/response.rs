//! What the site holds, and how it is given.

use std::io::{self, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use assay_http::coding::GzipWriter;

use super::Request;
use crate::run_command::one_date;

/// The same for everything, so that responses can be compared with each other.
const MODIFIED: &str = "Tue, 03 Nov 2026 10:00:00 GMT";

/// Bytes of the large body.
const LARGE: usize = 6 << 20;

/// Something that has a validator.
struct Entity {
    media: &'static str,
    cache: &'static str,
    body: Vec<u8>,
}

/// Responds to one request. False: the connection ends.
pub fn give(request: &Request, to: &mut TcpStream) -> io::Result<bool> {
    if let Some(entity) = entity(&request.path) {
        return give_entity(request, &entity, to).map(|()| true);
    }
    let path = request.path.split('?').next().unwrap_or_default();
    let text = "Content-Type: text/plain\r\n";
    match path {
        "/moved.bmp" => {
            simple(request, to, "302 Found", "Location: /d.bmp\r\nCache-Control: no-store\r\n", b"")
        }
        "/now" => simple(request, to, "200 OK", &format!("{text}Cache-Control: no-store\r\n"), b"made anew"),
        "/none" => simple(request, to, "204 No Content", "", b""),
        "/fails" => {
            simple(request, to, "503 Service Unavailable", &format!("{text}Retry-After: 1\r\n"), b"later")
        }
        "/login" => {
            let fields = format!("{text}Set-Cookie: who=a; Path=/\r\nSet-Cookie: also=b; Path=/\r\n");
            simple(request, to, "200 OK", &fields, b"welcome")
        }
        "/private" => {
            let cookie = request.field("cookie").unwrap_or("nobody");
            simple(
                request,
                to,
                "200 OK",
                &format!("{text}Cache-Control: private, no-cache\r\n"),
                cookie.as_bytes(),
            )
        }
        "/report" => simple(request, to, "204 No Content", "Cache-Control: no-store\r\n", b""),
        "/submit" => {
            let body = [b"<!DOCTYPE html><body>got ", &request.body[..], b"</body>"].concat();
            simple(request, to, "200 OK", "Content-Type: text/html\r\nCache-Control: no-store\r\n", &body)
        }
        "/echo" => {
            let sum = request
                .body
                .iter()
                .fold(7u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(*byte)));
            // A form with a file has another boundary each time.
            let sum = if request.path == "/echo?form" { 0 } else { sum };
            let body = format!("{} of {} bytes, {sum}", request.method, request.body.len());
            simple(request, to, "200 OK", text, body.as_bytes())
        }
        "/until-close" => {
            let head = head("200 OK", &format!("{text}Connection: close\r\n"));
            to.write_all(&[head.as_bytes(), &noise(300_000)].concat())?;
            Ok(false)
        }
        "/parts" => parts(to).map(|()| true),
        _ => simple(request, to, "404 Not Found", text, b"there is none"),
    }
}

fn entity(path: &str) -> Option<Entity> {
    const HOUR: &str = "public, max-age=3600";
    let is = |media, cache, body| Some(Entity { media, cache, body });
    match path {
        "/" => is("text/html; charset=utf-8", "no-cache", include_bytes!("page.html").to_vec()),
        "/style.css" => {
            is("text/css", HOUR, b"#box { width: 123px; height: 45px; color: rgb(1, 2, 3) }".to_vec())
        }
        "/script.js" => is("text/javascript", HOUR, include_bytes!("script.js").to_vec()),
        "/a.bmp" => is("image/bmp", HOUR, bitmap(31, 17)),
        "/b.bmp" => is("image/bmp", HOUR, bitmap(64, 64)),
        "/c.bmp" => is("image/bmp", "no-store", bitmap(200, 3)),
        "/d.bmp" => is("image/bmp", HOUR, bitmap(320, 200)),
        "/tone.wav" => is("audio/wav", HOUR, tone()),
        "/large" => is("application/octet-stream", HOUR, noise(LARGE)),
        _ => None,
    }
}

fn head(status: &str, fields: &str) -> String {
    let date = one_date();
    format!("HTTP/1.1 {status}\r\nDate: {date}\r\n{fields}\r\n")
}

fn simple(
    request: &Request,
    to: &mut TcpStream,
    status: &str,
    fields: &str,
    body: &[u8],
) -> io::Result<bool> {
    let length =
        if status.starts_with("204") { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
    let body = if request.method == "HEAD" { b"" } else { body };
    to.write_all(&[head(status, &format!("{fields}{length}")).as_bytes(), body].concat())?;
    Ok(true)
}

fn give_entity(request: &Request, entity: &Entity, to: &mut TcpStream) -> io::Result<()> {
    let is_text = entity.media.starts_with("text/");
    let is_coded = is_text && request.field("accept-encoding").is_some_and(|value| value.contains("gzip"));
    let tag = format!("\"{}-{}\"", &request.path[1..], if is_coded { "gzip" } else { "plain" });
    let vary = if is_text { "Vary: Accept-Encoding\r\n" } else { "" };
    let about =
        format!("ETag: {tag}\r\nLast-Modified: {MODIFIED}\r\nCache-Control: {}\r\n{vary}", entity.cache);
    let is_known = match (request.field("if-none-match"), request.field("if-modified-since")) {
        (Some(tags), _) => tags.contains(&tag),
        (None, since) => since == Some(MODIFIED),
    };
    if is_known {
        return to.write_all(head("304 Not Modified", &about).as_bytes());
    }
    let mut body = entity.body.clone();
    let (mut status, mut fields) = ("200 OK", format!("{about}Content-Type: {}\r\n", entity.media));
    if is_coded {
        let mut coded = Vec::new();
        GzipWriter::new().encode([&body[..]], &mut coded);
        body = coded;
        fields += "Content-Encoding: gzip\r\n";
    } else {
        fields += "Accept-Ranges: bytes\r\n";
        if let Some((from, to)) = range(request, body.len()) {
            status = "206 Partial Content";
            fields += &format!("Content-Range: bytes {from}-{to}/{}\r\n", body.len());
            body = body[from..=to].to_vec();
        }
    }
    fields += &format!("Content-Length: {}\r\n", body.len());
    let body = if request.method == "HEAD" { &[][..] } else { &body };
    to.write_all(&[head(status, &fields).as_bytes(), body].concat())
}

/// First and last byte that are requested; of several ranges, none.
fn range(request: &Request, length: usize) -> Option<(usize, usize)> {
    let (from, to) = request.field("range")?.strip_prefix("bytes=")?.split_once('-')?;
    let last = length - 1;
    match (from.parse::<usize>(), to.parse::<usize>()) {
        (Ok(from), to) if from <= last => Some((from, to.unwrap_or(last).min(last))),
        (Err(_), Ok(bytes)) if from.is_empty() => Some((length - bytes.min(length), last)),
        _ => None,
    }
}

/// In chunks with time between them.
fn parts(to: &mut TcpStream) -> io::Result<()> {
    let fields = "Content-Type: text/plain\r\nCache-Control: no-store\r\nTransfer-Encoding: chunked\r\n";
    to.write_all(head("200 OK", fields).as_bytes())?;
    for part in 0..5 {
        thread::sleep(Duration::from_millis(20));
        let text = format!("part {part}\n").repeat(100);
        to.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes())?;
    }
    to.write_all(b"0\r\n\r\n")
}

/// Bytes that no coding makes shorter.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 88_172_645_463_325_252u64;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[0]
    };
    std::iter::repeat_with(next).take(length).collect()
}

/// An image of this size in noise.
fn bitmap(width: u32, height: u32) -> Vec<u8> {
    let row = (width * 3).next_multiple_of(4);
    let mut image = b"BM".to_vec();
    for number in
        [54 + row * height, 0, 54, 40, width, height, 24 << 16 | 1, 0, row * height, 2835, 2835, 0, 0]
    {
        image.extend(number.to_le_bytes());
    }
    image.extend(noise((row * height) as usize));
    image
}

/// Four minutes of sound, in which browsers seek with ranges.
fn tone() -> Vec<u8> {
    let (rate, seconds) = (8000u32, 240u32);
    let length = rate * seconds;
    let mut sound = [b"RIFF", &(36 + length).to_le_bytes()[..], b"WAVEfmt "].concat();
    for number in [16, 1 << 16 | 1, rate, rate, 8 << 16 | 1] {
        sound.extend(number.to_le_bytes());
    }
    sound.extend([b"data", &length.to_le_bytes()[..]].concat());
    sound.extend(noise(length as usize));
    sound
}
