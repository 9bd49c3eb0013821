//! An evaluation whose disk is full: clients are served as before, the user hears of it, and each response is either written down or
//! counted as lost.

use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, Stdio};

use assay_record::spe::read_responses;
use assay_testbed::skip;

use crate::support::{Assay, wait_for};

/// Bytes of the disk.
const DISK_BYTES: u64 = 8 << 20;
/// Each is received directly and through the proxy.
const TARGETS: u64 = 2;

/// Whether a disk of one's own can be had.
fn may_have_a_disk() -> bool {
    let made = Command::new("unshare").args(["--mount", "true"]).stderr(Stdio::null()).status();
    let may = made.is_ok_and(|status| status.success());
    if !may {
        skip("no mounts of one's own (they need root)");
    }
    may
}

/// Serves connections one after the other for ever, each as long as it goes on.
fn origin() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let address = listener.local_addr().expect("it listens");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            std::thread::spawn(move || {
                let mut lines = BufReader::new(stream.try_clone().expect("a socket")).lines();
                while let Some(Ok(line)) = lines.next() {
                    let is_end = line.is_empty();
                    if is_end && stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").is_err()
                    {
                        return;
                    }
                }
            });
        }
    });
    address
}

/// An evaluation that writes to a small disk in namespaces of its own, which are there until standard input is closed.
struct OnDisk {
    shell: Child,
    lines: Lines<BufReader<ChildStderr>>,
    address: SocketAddr,
    evaluation: String,
    disk: PathBuf,
    seen: Vec<String>,
}

impl OnDisk {
    fn start(assay: &Assay) -> Self {
        let script = format!(
            "mkdir disk && mount -t tmpfs -o size={DISK_BYTES} tmpfs disk && \
             {{ \"$0\" spe --listen 127.0.0.1:0 --origin {} --proxy builtin --dir disk/e >&2 & }} && echo \"pid $!\" >&2 && \
             wait $!; echo \"code $?\" >&2; read -r _",
            origin()
        );
        let mut shell = Command::new("unshare")
            .args(["--mount", "sh", "-c", &script, env!("CARGO_BIN_EXE_assay")])
            .current_dir(assay.directory.path())
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("unshare starts");
        let mut lines = BufReader::new(shell.stderr.take().expect("piped")).lines();
        let mut seen = Vec::new();
        let evaluation = after(&mut lines, &mut seen, "pid ");
        let address = after(&mut lines, &mut seen, "ready: clients may come to ");
        let address = address.split(';').next().and_then(|address| address.parse().ok()).expect("an address");
        // As that namespace sees it.
        let disk = PathBuf::from(format!("/proc/{}/root{}", shell.id(), assay.path("disk").display()));
        Self { shell, lines, address, evaluation, disk, seen }
    }

    /// Requests so many things, one after the other; each must come.
    fn request(&self, count: u64) {
        let mut stream = TcpStream::connect(self.address).expect("it listens");
        for number in 0..count {
            write!(stream, "GET /{number:0>200} HTTP/1.1\r\nHost: x.test\r\n\r\n").expect("a connection");
            let mut response = Vec::new();
            while !response.ends_with(b"\r\n\r\nok") {
                let mut more = [0; 4096];
                let length = stream.read(&mut more).expect("a response");
                assert!(length > 0, "{}", String::from_utf8_lossy(&response));
                response.extend_from_slice(&more[..length]);
            }
            assert!(response.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&response));
        }
    }

    /// Fills the disk until so many bytes are free.
    fn fill(&self, free_bytes: u64) {
        let mut filler = std::fs::File::create(self.disk.join("filler")).expect("there is room for a name");
        let free =
            || rustix::fs::statvfs(&self.disk).map(|disk| disk.f_bavail * disk.f_frsize).expect("a disk");
        while free() > free_bytes && filler.write_all(&[1; 4096]).is_ok() {}
    }

    /// Ends it as a user does; its code.
    fn end(&mut self) -> String {
        let kill = Command::new("kill").args(["-s", "INT", &self.evaluation]).status();
        assert!(kill.expect("kill").success());
        after(&mut self.lines, &mut self.seen, "code ")
    }

    /// Rows that can be read at its end.
    fn rows(&self) -> u64 {
        read_responses(&self.disk.join("e/responses.parquet")).expect("it can be read").len() as u64
    }

    fn has_said(&self, words: &str) -> bool {
        self.seen.iter().any(|line| line.contains(words))
    }
}

impl Drop for OnDisk {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = Command::new("kill").arg(&self.evaluation).status();
        }
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}

/// What follows these words in the first line that has them.
fn after(lines: &mut Lines<BufReader<ChildStderr>>, seen: &mut Vec<String>, words: &str) -> String {
    for line in lines {
        let line = line.expect("text");
        let found = line.split_once(words).map(|(_, rest)| rest.to_owned());
        seen.push(line);
        if let Some(found) = found {
            return found;
        }
    }
    panic!("no `{words}` in {seen:#?}");
}

#[test]
fn a_disk_without_room_for_the_end_of_a_table_loses_none_of_its_rows() {
    if !may_have_a_disk() {
        return;
    }
    let assay = Assay::new();
    let mut evaluation = OnDisk::start(&assay);
    evaluation.request(50);
    // Room for the rows, and not for what may belong to a row group.
    evaluation.fill(200 << 10);
    assert_eq!(evaluation.end(), "0", "{:#?}", evaluation.seen);
    assert!(
        evaluation.has_said("it can be read as it is, with 100 rows beside it"),
        "{:#?}",
        evaluation.seen
    );
    assert_eq!(evaluation.rows(), 50 * TARGETS);
}

#[test]
fn a_full_disk_is_told_while_an_evaluation_goes_on_and_costs_only_what_it_has_no_room_for() {
    if !may_have_a_disk() {
        return;
    }
    let assay = Assay::new();
    let mut evaluation = OnDisk::start(&assay);
    evaluation.request(500);
    evaluation.fill(0);
    evaluation.request(500);
    wait_for(&mut evaluation.lines, "responses.parquet.rows: No space left");
    // Room for the end of everything else.
    let filler =
        std::fs::OpenOptions::new().write(true).open(evaluation.disk.join("filler")).expect("it is there");
    filler.set_len(filler.metadata().expect("it is there").len() - (24 << 10)).expect("a file");
    assert_eq!(evaluation.end(), "96", "{:#?}", evaluation.seen);
    let lost =
        evaluation.seen.iter().find_map(|line| line.split_once(" responses could not be written down"));
    let lost: u64 = lost.and_then(|(count, _)| count.parse().ok()).expect("a number");
    let rows = evaluation.rows();
    assert_eq!(rows + lost, 1000 * TARGETS, "{rows} and {lost} of {:#?}", evaluation.seen);
    assert!(rows > 0 && lost > 0, "{rows} and {lost}");
}
