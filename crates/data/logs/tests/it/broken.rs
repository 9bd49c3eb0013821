//! Lines that are broken in a hundred ways, between lines that are not.

use std::io::Write;

use crate::support::{analyse, analyse_text};

const GOOD: &str = "1700000000.250    240 10.0.0.9 TCP_MISS/200 2011 GET http://a.example/x - HIER_DIRECT/192.0.2.1 text/html";

/// Broken lines: none of them is a request in Squid's native format.
fn broken() -> Vec<Vec<u8>> {
    let mut lines: Vec<Vec<u8>> = Vec::new();
    let fields: Vec<&str> = GOOD.split(' ').filter(|field| !field.is_empty()).collect();
    // Cut anywhere before the last field begins.
    for at in (1..GOOD.len() - "text/html".len()).step_by(2) {
        lines.push(GOOD.as_bytes()[..at].to_vec());
    }
    // A field missing.
    for missing in 0..fields.len() {
        let left: Vec<&str> =
            fields.iter().enumerate().filter(|(at, _)| *at != missing).map(|(_, f)| *f).collect();
        lines.push(left.join(" ").into_bytes());
    }
    // Something in a field of numbers that is no number.
    for (at, wrong) in [
        (0, "yesterday"),
        (0, "17:00"),
        (1, "fast"),
        (1, "1e3"),
        (3, "TCP_MISS/2x0"),
        (3, "TCP_MISS/20000"),
        (3, "TCP_MISS"),
        (4, "many"),
        (4, "0x10"),
        (4, "99999999999999999999999"),
    ] {
        let mut changed = fields.clone();
        changed[at] = wrong;
        lines.push(changed.join(" ").into_bytes());
    }
    // Bytes of any kind, other formats, and a line that never ends.
    for seed in 0u8..30 {
        lines.push(
            (0..=255u8)
                .map(|byte| byte.wrapping_mul(37).wrapping_add(seed))
                .filter(|b| *b != b'\n')
                .collect(),
        );
    }
    lines.push(b"\xff\xfe\x00G\x00E\x00T".to_vec());
    lines.push(b"\x1f\x8b\x08\x00".repeat(10));
    lines.push(b"127.0.0.1 - - [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.0\" 200 1".to_vec());
    lines.push(b"{\"time\": 1700000000.25, \"status\": 200}".to_vec());
    lines.push(vec![b'x'; 70_000]);
    lines.push(vec![b' '; 300_000]);
    lines.push(b"1700000000.250 ".repeat(50_000));
    lines
}

#[test]
fn broken_lines_of_a_hundred_kinds_are_counted_and_change_no_other_figure() {
    let broken = broken();
    assert!(broken.len() >= 100, "{} kinds", broken.len());
    let good = format!("{GOOD}\n");
    let mut text = Vec::new();
    for line in &broken {
        text.extend_from_slice(good.as_bytes());
        text.extend_from_slice(line);
        text.push(b'\n');
    }
    let (with, without) = (
        analyse_text(&text, Some("squid")),
        analyse_text(good.repeat(broken.len()).as_bytes(), Some("squid")),
    );
    assert_eq!(with.lines.malformed, broken.len() as u64);
    assert_eq!(with.lines.read, 2 * broken.len() as u64);
    assert!(!with.malformed.is_empty() && with.malformed.iter().all(|line| !line.reason.is_empty()));
    assert_eq!(with.all, without.all);
    assert_eq!(with.by_class, without.by_class);
    assert_eq!(with.groups, without.groups);
    assert_eq!(with.top, without.top);
    assert_eq!(with.caches, without.caches);
}

#[test]
fn a_clock_that_goes_backwards_is_noted_and_every_line_still_counts() {
    let line = |at: u64| GOOD.replace("1700000000.250", &format!("{at}.000")) + "\n";
    let text: String = [5, 3, 9, 1, 20_000_000_000, 2].map(line).concat();
    let document = analyse_text(text.as_bytes(), Some("squid"));
    assert_eq!((document.all.requests, document.lines.malformed, document.lines.backwards), (6, 0, 3));
    assert!(document.notes.iter().any(|note| note.contains("earlier than the line before")));
    assert_eq!(document.time.iter().map(|step| step.figures.requests).sum::<u64>(), 6);
}

#[test]
fn a_rotated_set_is_read_in_the_order_of_time_whatever_its_names_and_compression() {
    let folder = tempfile::tempdir().unwrap();
    let line = |at: u64| GOOD.replace("1700000000.250", &format!("{at}.000")) + "\n";
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    write("access.log", (line(30) + &line(31)).as_bytes());
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all((line(20) + &line(21)).as_bytes()).unwrap();
    write("access.log.1.gz", &gzip.finish().unwrap());
    write("access.log.2.zst", &zstd::stream::encode_all(line(10).as_bytes(), 1).unwrap());
    write("access.log.3", b"");
    let document = analyse(&[folder.path().join("access.log*")], None);
    assert_eq!((document.all.requests, document.lines.backwards), (5, 0));
    let compressions: Vec<_> = document.inputs.iter().map(|input| input.compression.as_deref()).collect();
    assert_eq!(compressions, [Some("zstd"), Some("gzip"), None]);
}
