//! A client and a server of this crate, whose bytes arrive in pieces and in any order of the two directions: every request gets
//! its response, whatever the windows and limits are.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::LazyLock;

use assay_base::random::Rng;
use assay_http2::{Config, Connection, ErrorCode, Event, RequestHead, Stream};
use proptest::prelude::*;

const MOST_BYTES: usize = 200_000;

/// What a server has still to send.
#[derive(Debug)]
struct Sending {
    stream: Stream,
    number: usize,
    sent: usize,
}

/// A request of the plan.
#[derive(Debug, Clone, Copy)]
struct Planned {
    upload: usize,
    download: usize,
    /// The response states its length.
    has_length: bool,
    has_trailers: bool,
}

fn planned() -> impl Strategy<Value = Planned> {
    let size = || prop_oneof![Just(0), 1usize..100, 10_000usize..MOST_BYTES];
    (size(), size(), any::<bool>(), any::<bool>()).prop_map(|(upload, download, has_length, has_trailers)| {
        Planned { upload, download, has_length, has_trailers }
    })
}

fn config() -> impl Strategy<Value = Config> {
    let window = || prop_oneof![Just(65_535u32), 65_535u32..300_000];
    (1u32..6, window(), window(), 0u32..5000).prop_map(
        |(max_streams, stream_window, connection_window, table_bytes)| Config {
            max_streams,
            stream_window,
            connection_window,
            table_bytes,
            ..Config::default()
        },
    )
}

/// Bytes of the body of a request, or of its response: each number has other ones.
fn body(number: usize, bytes: Range<usize>) -> &'static [u8] {
    static BODIES: LazyLock<Vec<u8>> = LazyLock::new(|| (0..MOST_BYTES + 256).map(|at| at as u8).collect());
    &BODIES[number * 31 % 256..][bytes]
}

fn part(number: usize, sent: usize, size: usize) -> &'static [u8] {
    body(number, sent..size.min(sent + 20_000))
}

/// Both sides and what is on the way between them.
struct World {
    plan: Vec<Planned>,
    client: Connection,
    server: Connection,
    to_server: VecDeque<u8>,
    to_client: VecDeque<u8>,
    next: usize,
    /// Requests by stream, and how much of each upload was sent.
    uploads: Vec<Sending>,
    numbers: HashMap<u32, usize>,
    /// Of the server: uploads that come, by stream.
    arriving: HashMap<u32, (usize, usize)>,
    responses: Vec<Sending>,
    /// Of the client: bytes of each response, and whether it is complete.
    received: Vec<(usize, bool)>,
}

impl World {
    fn open(&mut self) {
        let Some(planned) = self.plan.get(self.next).copied() else { return };
        let path = format!("/{}", self.next);
        let length = planned.upload.to_string();
        let head =
            RequestHead { method: b"POST", scheme: b"http", authority: b"a.test", path: path.as_bytes() };
        let fields = [(&b"Content-Length"[..], length.as_bytes()), (b"X-Number", path.as_bytes())];
        let Ok(stream) = self.client.request(&head, fields.into_iter(), planned.upload == 0) else { return };
        self.numbers.insert(stream.id, self.next);
        if planned.upload > 0 {
            self.uploads.push(Sending { stream, number: self.next, sent: 0 });
        }
        self.next += 1;
    }

    fn upload(&mut self, which: usize) {
        if self.uploads.is_empty() {
            return;
        }
        let at = which % self.uploads.len();
        let Sending { stream, number, sent } = &mut self.uploads[at];
        let size = self.plan[*number].upload;
        let bytes = part(*number, *sent, size);
        let ends = *sent + bytes.len() == size;
        *sent += self.client.data(*stream, bytes, ends).expect("the stream is open");
        if *sent == size {
            self.uploads.swap_remove(at);
        }
    }

    fn respond(&mut self, which: usize) {
        if self.responses.is_empty() {
            return;
        }
        let at = which % self.responses.len();
        let Sending { stream, number, sent } = &mut self.responses[at];
        let Planned { download, has_trailers, .. } = self.plan[*number];
        let bytes = part(*number, *sent, download);
        let is_last = *sent + bytes.len() == download;
        *sent += self.server.data(*stream, bytes, is_last && !has_trailers).expect("the stream is open");
        if *sent == download {
            if has_trailers {
                let fields = [(&b"x-end"[..], &b"yes"[..])];
                self.server.trailers(*stream, fields.into_iter()).expect("the stream is open");
            }
            self.responses.swap_remove(at);
        }
    }

    fn begin_response(&mut self, stream: Stream, number: usize) {
        let Planned { download, has_length, has_trailers, .. } = self.plan[number];
        let length = download.to_string();
        let fields = has_length.then_some((&b"content-length"[..], length.as_bytes()));
        let ends = download == 0 && !has_trailers;
        self.server.respond(stream, 200, fields.into_iter(), ends).expect("the stream is open");
        if !ends {
            self.responses.push(Sending { stream, number, sent: 0 });
        }
    }

    fn deliver_to_server(&mut self, bytes: usize) {
        let input: Vec<u8> = self.to_server.drain(..bytes.min(self.to_server.len())).collect();
        let mut rest = &input[..];
        loop {
            let (used, event) = self.server.next(rest).expect("the client keeps the rules");
            rest = &rest[used..];
            let complete = match event {
                Event::NeedMore => return,
                Event::Head { stream, head, ends } => {
                    let number = head.path()[1..].parse().expect("a number");
                    assert_eq!(head.field("x-number"), Some(head.path().as_bytes()));
                    self.arriving.insert(stream.id, (number, 0));
                    ends.then_some(stream)
                }
                Event::Data { stream, data, ends } => {
                    let (number, seen) = self.arriving.get_mut(&stream.id).expect("its head came");
                    assert!(data == body(*number, *seen..*seen + data.len()));
                    *seen += data.len();
                    ends.then_some(stream)
                }
                Event::Writable { .. } => None,
                other => panic!("{other:?}"),
            };
            if let Some(stream) = complete {
                let (number, seen) = self.arriving.remove(&stream.id).expect("its head came");
                assert_eq!(seen, self.plan[number].upload);
                self.begin_response(stream, number);
            }
        }
    }

    fn deliver_to_client(&mut self, bytes: usize) {
        let input: Vec<u8> = self.to_client.drain(..bytes.min(self.to_client.len())).collect();
        let mut rest = &input[..];
        loop {
            let (used, event) = self.client.next(rest).expect("the server keeps the rules");
            rest = &rest[used..];
            match event {
                Event::NeedMore => return,
                Event::Head { stream, ends, .. } => self.received[self.numbers[&stream.id]].1 = ends,
                Event::Data { stream, data, ends } => {
                    let number = self.numbers[&stream.id];
                    let (seen, is_complete) = &mut self.received[number];
                    assert!(data == body(number, *seen..*seen + data.len()));
                    *seen += data.len();
                    *is_complete = ends;
                }
                Event::Trailers { stream, head } => {
                    assert_eq!(head.field("x-end"), Some(&b"yes"[..]));
                    self.received[self.numbers[&stream.id]].1 = true;
                }
                // The client's limit before the server's settings came was too high: the request goes again.
                Event::Reset { stream, code: ErrorCode::REFUSED_STREAM } => {
                    let number = self.numbers[&stream.id];
                    self.uploads.retain(|upload| upload.number != number);
                    self.plan.push(self.plan[number]);
                    self.received.push((0, false));
                    self.received[number] = (self.plan[number].download, true);
                }
                Event::Writable { .. } => {}
                other => panic!("{other:?}"),
            }
        }
    }

    fn carry(&mut self) {
        self.to_server.extend(self.client.output());
        self.client.wrote(self.client.output().len());
        self.to_client.extend(self.server.output());
        self.server.wrote(self.server.output().len());
    }
}

proptest! {
    #[test]
    fn every_request_gets_its_response(
        plan in proptest::collection::vec(planned(), 1..20), seed in any::<u64>(), client in config(), server in config(),
    ) {
        let mut world = World {
            received: vec![(0, false); plan.len()],
            plan,
            client: Connection::client(client),
            server: Connection::server(server),
            to_server: VecDeque::new(),
            to_client: VecDeque::new(),
            next: 0,
            uploads: Vec::new(),
            numbers: HashMap::new(),
            arriving: HashMap::new(),
            responses: Vec::new(),
        };
        let mut rng = Rng::new(seed);
        let mut idle = 0;
        while world.received.iter().any(|(_, is_complete)| !is_complete) {
            let step = rng.below(6);
            let amount = rng.below(30_000) as usize;
            match step {
                0 => world.open(),
                1 => world.upload(amount),
                2 => world.respond(amount),
                3 => world.deliver_to_server(amount),
                4 => world.deliver_to_client(amount),
                _ => world.carry(),
            }
            idle += 1;
            prop_assert!(idle < 200_000, "nothing moves any more: {:?}", world.received);
        }
        for (planned, (seen, _)) in world.plan.iter().zip(&world.received) {
            prop_assert_eq!(planned.download, *seen);
        }
    }
}
