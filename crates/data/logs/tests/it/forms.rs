//! A thousand requests in every form that has a name, whole and damaged: what is read is what was requested, or is not read.

use std::collections::HashSet;
use std::io::Write;
use std::ops::ControlFlow;

use assay_logs::access::Access;
use assay_logs::error::LogsError;
use assay_logs::{ReadSet, class, for_each_access};

use crate::writers::{COMMON, FactSet, Request, WRITERS, Writer, requests};

/// What a line says of a request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Facts {
    time_ms: Option<i64>,
    duration_ms: Option<u64>,
    client: Option<String>,
    host: Option<String>,
    method: Option<String>,
    target: String,
    status: u16,
    bytes: Option<u64>,
    is_hit: Option<bool>,
    agent: Option<String>,
}

impl Facts {
    /// As far as a writer says them.
    fn of(request: &Request, says: FactSet) -> Self {
        Self {
            time_ms: Some(request.time_ms - request.time_ms.rem_euclid(says.time_ms)),
            duration_ms: says.duration_ms.map(|unit| request.duration_ms - request.duration_ms % unit),
            client: says.client.then(|| request.client.to_owned()),
            host: says.host.then(|| request.host.to_owned()),
            method: says.method.then(|| request.method.to_owned()),
            target: request.target.clone(),
            status: request.status,
            bytes: says.bytes.then_some(request.bytes),
            is_hit: says.outcome.then_some(request.is_hit),
            agent: says.agent.then(|| request.agent.to_owned()),
        }
    }

    fn read(access: &Access<'_>, says: FactSet) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut target = text(access.url);
        if let Some((_, rest)) = target.split_once("://") {
            target = rest[rest.find('/').unwrap_or(rest.len())..].to_owned();
        }
        if access.is_rootless {
            target.insert(0, '/');
        }
        if !access.query.is_empty() {
            target = format!("{target}?{}", text(access.query));
        }
        Self {
            time_ms: access.time_us.map(|us| us.div_euclid(1000)),
            duration_ms: says.duration_ms.and(access.duration_us.map(|us| us / 1000)),
            client: says.client.then(|| text(access.client)),
            host: says.host.then(|| text(access.host())),
            method: says.method.then(|| text(access.method)),
            target,
            status: access.status,
            bytes: says.bytes.then_some(access.bytes),
            is_hit: says.outcome.then(|| class::classify(access).is_hit()),
            agent: says.agent.then(|| text(access.agent)),
        }
    }
}

/// A log as it was read.
struct Log {
    facts: Vec<Facts>,
    set: ReadSet,
}

fn read(text: &[u8], says: FactSet) -> Result<Log, LogsError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    std::fs::write(&path, text).unwrap();
    let mut facts = Vec::new();
    let set = for_each_access(&[path], None, |access, _| {
        facts.push(Facts::read(access, says));
        ControlFlow::Continue(())
    })?;
    Ok(Log { facts, set })
}

fn lines(writer: &Writer, requests: &[Request]) -> Vec<Vec<u8>> {
    requests.iter().map(|request| (writer.line)(request).into_bytes()).collect()
}

fn text(writer: &Writer, lines: &[Vec<u8>], end: &[u8]) -> Vec<u8> {
    let mut text = writer.head.as_bytes().to_vec();
    for line in lines {
        text.extend_from_slice(line);
        text.extend_from_slice(end);
    }
    text
}

#[test]
fn a_thousand_requests_come_back_from_every_form_exactly_as_they_were() {
    let requests = requests(1000);
    for writer in &WRITERS {
        let text = text(writer, &lines(writer, &requests), b"\n");
        let log = read(&text, writer.says).unwrap_or_else(|error| panic!("{}: {error}", writer.format));
        assert_eq!(log.set.format, writer.format);
        assert_eq!(
            (log.set.lines, log.set.malformed),
            (1000, 0),
            "{}: {:?}",
            writer.format,
            log.set.first_malformed
        );
        for (request, read) in requests.iter().zip(&log.facts) {
            assert_eq!(
                read,
                &Facts::of(request, writer.says),
                "{}: {}",
                writer.format,
                (writer.line)(request)
            );
        }
        assert_eq!(log.facts.len(), 1000, "{}", writer.format);
    }
}

fn words(line: &[u8]) -> Vec<&[u8]> {
    line.split(|byte| *byte == b' ').filter(|word| !word.is_empty()).collect()
}

type Damage = fn(&[u8]) -> Vec<u8>;

/// What can happen to a line on its way: it is cut, doubled or torn, loses the order of its words or one of them, gets NULs, loses a quote,
/// or gets a CR.
const DAMAGES: [Damage; 9] = [
    |line| line[..line.len() * 3 / 5].to_vec(),
    |line| [line, line].concat(),
    |line| [&line[..line.len() / 2], line].concat(),
    |line| {
        let mut words = words(line);
        // The order of a JSON object says nothing.
        if words.len() > 3 && line[0] != b'{' {
            words.swap(1, 3);
        }
        words.join(&b' ')
    },
    |line| {
        let mut words = words(line);
        // A word that is missing in a text of JSON is not to be seen.
        if words.len() > 1 && line[0] != b'{' {
            words.remove(1);
        }
        words.join(&b' ')
    },
    |line| [&[0; 100], line].concat(),
    |line| [&line[..line.len() / 2], &[0; 9], &line[line.len() / 2..]].concat(),
    |line| {
        let quote = line.iter().rposition(|byte| *byte == b'"');
        line.iter().enumerate().filter(|(at, _)| Some(*at) != quote).map(|(_, byte)| *byte).collect()
    },
    |line| [line, b"\r", line].concat(),
];

#[test]
fn of_a_damaged_line_comes_what_was_requested_or_nothing() {
    let requests = requests(200);
    for writer in &WRITERS {
        // A user agent may have lost a word of its own.
        let says = FactSet { agent: false, ..writer.says };
        let expected: HashSet<Facts> = requests.iter().map(|request| Facts::of(request, says)).collect();
        let mut lines = lines(writer, &requests);
        // Each kind twice.
        for (line, damage) in lines.iter_mut().skip(3).step_by(11).zip(DAMAGES.iter().cycle()) {
            *line = damage(line);
        }
        let what = writer.format;
        let log = read(&text(writer, &lines, b"\n"), says).expect(what);
        for facts in &log.facts {
            let mut known = facts.clone();
            // Who sent it may be unknown then.
            if known.client.as_deref() == Some("") {
                let same = requests.iter().find(|request| request.target == known.target).expect(what);
                known.client = Some(same.client.to_owned());
            }
            assert!(expected.contains(&known), "{what}: {facts:?}");
        }
        assert_eq!(log.facts.len() as u64 + log.set.malformed, log.set.lines, "{what}");
        assert!(log.facts.len() >= 200 - 18, "{what}: only {} are left", log.facts.len());
    }
}

#[test]
fn line_ends_and_marks_of_other_systems_change_nothing() {
    let requests = requests(50);
    for writer in &WRITERS {
        let lines = lines(writer, &requests);
        let expected: Vec<Facts> = requests.iter().map(|request| Facts::of(request, writer.says)).collect();
        let plain = text(writer, &lines, b"\n");
        for (what, text) in [
            ("CR LF", text(writer, &lines, b"\r\n")),
            ("a mark of UTF-8", [b"\xef\xbb\xbf", &plain[..]].concat()),
            ("NULs at the beginning", [&vec![0; 70_000], &plain[..]].concat()),
        ] {
            let log =
                read(&text, writer.says).unwrap_or_else(|error| panic!("{} {what}: {error}", writer.format));
            assert_eq!(log.facts, expected, "{} with {what}", writer.format);
        }
        if writer.head.is_empty() {
            let log = read(&text(writer, &lines, b"\r"), writer.says).unwrap();
            assert_eq!(log.facts, expected, "{} with CR alone", writer.format);
        }
        let utf16: Vec<u8> =
            String::from_utf8(plain).unwrap().encode_utf16().flat_map(u16::to_le_bytes).collect();
        let error = read(&[b"\xff\xfe", &utf16[..]].concat(), writer.says).err();
        assert!(matches!(error, Some(LogsError::Unreadable { what: "UTF-16", .. })), "{}", writer.format);
    }
}

#[test]
fn a_zone_is_that_of_each_line() {
    let requests = requests(40);
    for writer in &WRITERS {
        let mut expected: Vec<Facts> =
            requests.iter().map(|request| Facts::of(request, writer.says)).collect();
        let mut lines = lines(writer, &requests);
        for (line, facts) in lines.iter_mut().zip(&mut expected).skip(20) {
            let text = String::from_utf8(line.clone()).unwrap();
            let moved = text.replacen(" +0000]", " -0530]", 1);
            if moved != text {
                facts.time_ms = facts.time_ms.map(|ms| ms + 19_800_000);
            }
            *line = moved.into_bytes();
        }
        let log = read(&text(writer, &lines, b"\n"), writer.says).unwrap();
        assert_eq!(log.facts, expected, "{}", writer.format);
    }
}

#[test]
fn a_log_with_lines_of_two_forms_is_read_by_both_and_says_so() {
    let requests = requests(100);
    let of = |format: &str| {
        WRITERS.iter().find(|writer| writer.format == format && writer.head.is_empty()).unwrap()
    };
    for (first, second) in [
        ("combined", "common"),
        ("squid", "combined"),
        ("haproxy", "ingress-nginx"),
        ("caddy", "combined"),
        ("nginx-main", "aws-alb"),
    ] {
        let (first, second) = (of(first), of(second));
        // A rotation in the middle of a file, and lines that take turns.
        let halves: Vec<Vec<u8>> = [lines(first, &requests[..60]), lines(second, &requests[60..])].concat();
        let turns = requests.iter().enumerate().map(|(n, request)| {
            if n % 3 == 0 { (second.line)(request) } else { (first.line)(request) }.into_bytes()
        });
        for lines in [halves, turns.collect()] {
            let what = format!("{} and {}", first.format, second.format);
            let log = read(&text(first, &lines, b"\n"), COMMON).expect(&what);
            assert_eq!((log.set.lines, log.set.malformed), (100, 0), "{what}: {:?}", log.set.first_malformed);
            let targets: Vec<&str> = log.facts.iter().map(|facts| facts.target.as_str()).collect();
            assert_eq!(targets, requests.iter().map(|request| request.target.as_str()).collect::<Vec<_>>());
            let note = log.set.remarks.notes().concat();
            assert!(note.contains(first.format) && note.contains(second.format), "{note}");
        }
    }
}

#[test]
fn formats_that_begin_far_behind_the_first_lines_are_recognised_where_they_begin() {
    let requests = requests(3020);
    let brief = |facts: &Facts| (facts.target.clone(), facts.status, facts.time_ms.map(|ms| ms / 1000));
    for n in (0..WRITERS.len()).step_by(2) {
        // Three formats, and a few lines of the first again.
        let writers = [0, 1, 7, 0].map(|step| &WRITERS[(n + step) % WRITERS.len()]);
        let what = writers.map(|writer| writer.format).join(", ");
        let sections = requests.chunks(1000).zip(writers);
        let sections: Vec<Vec<u8>> =
            sections.map(|(requests, writer)| text(writer, &lines(writer, requests), b"\n")).collect();
        assert!(sections[..3].iter().all(|section| section.len() > 65_536), "{what}");
        let log = read(&sections.concat(), COMMON).expect(&what);
        let first = &log.set.first_malformed;
        assert_eq!((log.set.lines, log.set.malformed), (3020, 0), "{what}: {first:?}");
        let expected = requests.iter().map(|request| brief(&Facts::of(request, COMMON)));
        for (read, expected) in log.facts.iter().map(brief).zip(expected) {
            assert_eq!(read, expected, "{what}");
        }
        let note = log.set.remarks.notes().concat();
        assert!(writers.iter().all(|writer| note.contains(writer.format)), "{what}: {note}");
    }
}

#[test]
fn rubbish_behind_a_format_is_malformed_and_a_format_behind_that_is_read() {
    let requests = requests(2000);
    let writer = |format: &str| WRITERS.iter().find(|writer| writer.format == format).unwrap();
    let of = |format: &str, requests: &[Request]| {
        let writer = writer(format);
        text(writer, &lines(writer, requests), b"\n")
    };
    let rubbish = b"Jul  1 10:00:31 h kernel: what no format has a word for\n".repeat(3000);
    let log = read(&[of("combined", &requests[..1000]), rubbish.clone()].concat(), COMMON).unwrap();
    assert_eq!((log.facts.len(), log.set.malformed), (1000, 3000));
    let halves = [of("combined", &requests[..1000]), rubbish, of("squid", &requests[1000..])];
    let log = read(&halves.concat(), COMMON).unwrap();
    // Some of its first lines may have gone by, and are counted.
    assert_eq!(log.facts.len() as u64 + log.set.malformed, 5000);
    assert!(log.set.malformed < 3000 + 750, "{}", log.set.malformed);
    assert_eq!(log.facts.last().unwrap().target, requests[1999].target);
}

#[test]
fn response_times_that_end_where_the_response_begins_are_said_to() {
    let requests = requests(20);
    for writer in &WRITERS {
        let log = read(&text(writer, &lines(writer, &requests), b"\n"), writer.says).unwrap();
        let is_said = log.set.remarks.notes().iter().any(|note| note.contains("without that of the body"));
        assert_eq!(
            is_said,
            writer.format.starts_with("aws-") && writer.format != "aws-s3",
            "{}",
            writer.format
        );
    }
}

#[test]
fn a_log_that_is_read_beside_its_compressed_copy_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let writer = WRITERS.iter().find(|writer| writer.format == "combined").unwrap();
    let lines = lines(writer, &requests(1000));
    let write = |name: &str, text: Vec<u8>| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let first = write("access.log.1", text(writer, &lines[..500], b"\n"));
    let log = write("access.log", text(writer, &lines[500..], b"\n"));
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(&std::fs::read(&log).unwrap()).unwrap();
    let copy = write("access.log.gz", encoder.finish().unwrap());
    let copies = |files: &[std::path::PathBuf]| -> Vec<String> {
        let set = for_each_access(files, None, |_, _| ControlFlow::Continue(())).unwrap();
        set.remarks.notes().into_iter().filter(|note| note.contains("holds the same lines")).collect()
    };
    assert_eq!(copies(&[first.clone(), log.clone(), log.clone()]), Vec::<String>::new());
    let notes = copies(&[copy.clone(), log.clone(), first]);
    let expected = format!("{} holds the same lines as {}:", copy.display(), log.display());
    assert!(notes.len() == 1 && notes[0].starts_with(&expected), "{notes:?}");
}
