//! Output of an intermediary towards its server: a server that reads strictly and remembers all it gets.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

use crate::corpus::strict::{Message, Read, request};

/// No case takes this long unless something hangs.
const PATIENCE: Duration = Duration::from_secs(20);

/// Input of a server.
#[derive(Debug, Clone)]
pub enum Record {
    Message(Message),
    /// A request that never became whole.
    Partial(Vec<u8>),
    /// Bytes that nobody may forward, with the reason.
    Bad(String, Vec<u8>),
}

/// The response to a request, and whether the connection ends with it. Requests are counted from 0.
type Response = dyn Fn(&Message, usize) -> (Vec<u8>, bool) + Send + Sync;

/// A server that remembers.
pub struct Recorder {
    pub address: SocketAddr,
    log: Arc<Mutex<Vec<Record>>>,
    is_over: Arc<AtomicBool>,
    accepting: Option<JoinHandle<Vec<JoinHandle<()>>>>,
}

impl Recorder {
    /// One that responds to every request with a copy of it.
    pub fn start() -> Self {
        Self::responding(|message, _| (response_to(message), false))
    }

    pub fn responding(response: impl Fn(&Message, usize) -> (Vec<u8>, bool) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (log, is_over) = (Arc::<Mutex<Vec<Record>>>::default(), Arc::<AtomicBool>::default());
        let response: Arc<Response> = Arc::new(response);
        let accepting = {
            let (log, is_over) = (Arc::clone(&log), Arc::clone(&is_over));
            spawn(move || {
                let mut connections = Vec::new();
                for stream in listener.incoming().map(Result::unwrap) {
                    if is_over.load(Ordering::SeqCst) {
                        break;
                    }
                    let (log, response) = (Arc::clone(&log), Arc::clone(&response));
                    connections.push(spawn(move || serve(stream, &log, &*response)));
                }
                connections
            })
        };
        Self { address, log, is_over, accepting: Some(accepting) }
    }

    /// All that it got. Whoever stands in front must have ended before.
    pub fn finish(mut self) -> Vec<Record> {
        self.is_over.store(true, Ordering::SeqCst);
        // Refused where a last connection of whoever stood in front has ended the accepting already.
        drop(TcpStream::connect(self.address));
        let accepting = self.accepting.take().expect("it is finished once");
        let connections = accepting.join().unwrap();
        connections.into_iter().for_each(|connection| connection.join().unwrap());
        self.take()
    }

    /// Records since the last call.
    pub fn take(&self) -> Vec<Record> {
        std::mem::take(&mut *self.log.lock().unwrap())
    }
}

/// The response of `Recorder::start`: the client can tell what was requested.
pub fn response_to(message: &Message) -> Vec<u8> {
    let requested = format!("{} {}", message.start[0], message.start[1]);
    let body = if message.start[0] == "HEAD" { "" } else { "ok" };
    format!(
        "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nX-Seen: {requested}\r\nContent-Length: 2\r\n\r\n{body}"
    )
    .into_bytes()
}

fn serve(mut stream: TcpStream, log: &Mutex<Vec<Record>>, response: &Response) {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut bytes = Vec::new();
    loop {
        match request(&bytes) {
            Read::Whole(message) => {
                bytes.drain(..message.length);
                let before = {
                    let mut log = log.lock().unwrap();
                    log.push(Record::Message(message.clone()));
                    log.iter().filter(|record| matches!(record, Record::Message(_))).count() - 1
                };
                let (text, ends) = response(&message, before);
                if stream.write_all(&text).is_err() || ends {
                    return;
                }
            }
            Read::Bad(what) => {
                log.lock().unwrap().push(Record::Bad(what, bytes));
                return;
            }
            Read::Partial => {
                let mut room = [0; 16 * 1024];
                match stream.read(&mut room) {
                    Ok(count @ 1..) => bytes.extend(&room[..count]),
                    Ok(0) | Err(_) => {
                        if !bytes.is_empty() {
                            log.lock().unwrap().push(Record::Partial(bytes));
                        }
                        return;
                    }
                }
            }
        }
    }
}
