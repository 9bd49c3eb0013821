//! One end of a TLS connection: records are decrypted and made, and only a partial record is kept.
//!
//! Bytes from the other side go into [`Session::receive`], which hands out their plain text; [`Session::seal`] makes records of what is to
//! be sent. Both append to a buffer of the caller's what has to go to the other side: handshakes, tickets and alerts, too.

use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncryptError, InsufficientSizeError, UnbufferedStatus,
};
use rustls::{CommonState, Error, HandshakeKind, ProtocolVersion};

use crate::tls::error::{TlsError, TlsErrorKind};
use crate::tls::offer::cipher_name;

/// Types of records (RFC 8446, 5.1), with which TLS begins.
const RECORD_TYPES: std::ops::RangeInclusive<u8> = 20..=24;
/// Upper bound on the plain text in one record, in bytes.
const RECORD_BYTES: usize = 16 * 1024;
/// Upper bound on the bytes by which a record is longer than its plain text.
const RECORD_OVERHEAD: usize = 5 + 256;

/// Upper bound on the bytes that a session keeps between two calls of [`Session::receive`], once the handshake is over: less than one
/// record.
pub const MAX_KEPT_BYTES: usize = 5 + RECORD_BYTES + 2048;

/// Upper bound on the bytes of the records that carry so much plain text.
pub fn sealed_bytes(plain: usize) -> usize {
    plain + plain.div_ceil(RECORD_BYTES) * RECORD_OVERHEAD
}

/// Parameters that both sides have agreed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NegotiatedParameters {
    /// Version: `1.2` or `1.3`.
    pub version: &'static str,
    /// The cipher suite, by its name in the registry of IANA.
    pub cipher: String,
    pub resumed: bool,
    /// The application protocol is HTTP/2 (ALPN).
    pub is_http2: bool,
}

/// One end of a TLS connection.
pub struct Session {
    side: Box<Side>,
    /// A partial record.
    incoming: Vec<u8>,
    stage: SessionState,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("stage", &self.stage).field("agreed", &self.negotiated()).finish()
    }
}

enum Side {
    Client(UnbufferedClientConnection),
    Server(UnbufferedServerConnection),
}

/// State of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SessionState {
    /// Nothing has come yet.
    Silent,
    /// Both sides are coming to an agreement.
    Handshake,
    /// Data may be sent and received.
    Open,
    /// The other side sends nothing more.
    Closed,
    /// Something was wrong, and nothing more is done.
    Failed,
}

/// What follows a step of the library.
enum StepResult {
    Step,
    /// Another step, which finds nothing if all bytes are used: they were data.
    Read,
    /// Wait for the other side.
    Wait,
    /// The other side sends nothing more.
    Closed,
}

impl Session {
    pub(crate) fn client(connection: UnbufferedClientConnection) -> Self {
        Self::new(Side::Client(connection))
    }

    pub(crate) fn server(connection: UnbufferedServerConnection) -> Self {
        Self::new(Side::Server(connection))
    }

    fn new(side: Side) -> Self {
        Self { side: Box::new(side), incoming: Vec::new(), stage: SessionState::Silent }
    }

    /// Whether the handshake is over, and data may be sent.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.stage == SessionState::Open
    }

    /// Whether the other side has sent `close_notify`.
    #[inline]
    pub fn is_closed(&self) -> bool {
        self.stage == SessionState::Closed
    }

    /// Length of the partial record that is kept.
    #[inline]
    pub fn kept_bytes(&self) -> usize {
        self.incoming.len()
    }

    /// The negotiated parameters; none during the handshake.
    pub fn negotiated(&self) -> Option<NegotiatedParameters> {
        let common = self.side.common();
        Some(NegotiatedParameters {
            version: match common.protocol_version()? {
                ProtocolVersion::TLSv1_3 => "1.3",
                _ => "1.2",
            },
            cipher: cipher_name(common.negotiated_cipher_suite()?),
            resumed: common.handshake_kind()? == HandshakeKind::Resumed,
            is_http2: common.alpn_protocol() == Some(crate::tls::HTTP_2),
        })
    }

    /// Appends the first message of a client to `out`; a server has nothing to send yet.
    pub fn begin(&mut self, out: &mut Vec<u8>) -> Result<(), TlsError> {
        self.receive(&mut [], &mut |_| (), out)
    }

    /// Processes bytes from the other side, in place; hands plain text to `plain`, and appends to `out` what has to be sent. After an
    /// error, `out` ends with the alert for the other side.
    pub fn receive(
        &mut self,
        bytes: &mut [u8],
        plain: &mut dyn FnMut(&[u8]),
        out: &mut Vec<u8>,
    ) -> Result<(), TlsError> {
        if self.stage == SessionState::Failed {
            return Err(TlsError::already_failed());
        }
        if self.stage == SessionState::Silent
            && let Some(first) = bytes.first()
        {
            if !RECORD_TYPES.contains(first) {
                self.stage = SessionState::Failed;
                return Err(TlsError::not_tls(bytes));
            }
            self.stage = SessionState::Handshake;
        }
        if self.incoming.is_empty() {
            let used = self.process(bytes, plain, out)?;
            self.incoming.extend_from_slice(&bytes[used..]);
        } else {
            let mut all = std::mem::take(&mut self.incoming);
            all.extend_from_slice(bytes);
            let used = self.process(&mut all, plain, out)?;
            if used < all.len() {
                all.drain(..used);
                self.incoming = all;
            }
        }
        Ok(())
    }

    /// Runs the library as far as these bytes allow, and returns how many are used.
    fn process(
        &mut self,
        bytes: &mut [u8],
        plain: &mut dyn FnMut(&[u8]),
        out: &mut Vec<u8>,
    ) -> Result<usize, TlsError> {
        let mut used = 0;
        loop {
            let (discard, next) = self.side.step(&mut bytes[used..], plain, out);
            used += discard;
            match next {
                Ok(StepResult::Step) => {}
                Ok(StepResult::Read) => {
                    if used == bytes.len()
                        && self.stage == SessionState::Open
                        && !self.side.common().wants_write()
                    {
                        break;
                    }
                }
                Ok(StepResult::Closed) => self.stage = SessionState::Closed,
                Ok(StepResult::Wait) => break,
                Err(error) => {
                    self.stage = SessionState::Failed;
                    self.side.write_alert(&mut bytes[used..], out);
                    return Err(error.into());
                }
            }
        }
        if self.stage == SessionState::Handshake && !self.side.common().is_handshaking() {
            self.stage = SessionState::Open;
        }
        Ok(used)
    }

    /// Appends records that carry `plain` to `out`. Nothing can be sent before the session [is open](Self::is_open).
    pub fn seal(&mut self, plain: &[u8], out: &mut Vec<u8>) -> Result<(), TlsError> {
        let mut buffer = vec![0; sealed_bytes(plain.len())];
        let sealed = self.seal_into(plain, &mut buffer, out)?;
        out.extend_from_slice(&buffer[..sealed]);
        Ok(())
    }

    /// Makes records that carry `plain` in `buffer`, of [`sealed_bytes`], and returns their length. What has to be sent before them is
    /// appended to `out`. Nothing can be sent before the session [is open](Self::is_open).
    pub fn seal_into(
        &mut self,
        plain: &[u8],
        buffer: &mut [u8],
        out: &mut Vec<u8>,
    ) -> Result<usize, TlsError> {
        if self.stage == SessionState::Failed {
            return Err(TlsError::already_failed());
        }
        let mut sealed = 0;
        self.side.write(&mut self.incoming, out, &mut |session, _| {
            sealed = session.encrypt(plain, buffer)?;
            Ok(())
        })?;
        Ok(sealed)
    }

    /// Appends `close_notify` to `out`: nothing more is sent. Nothing is appended if the handshake is not over.
    pub fn close(&mut self, out: &mut Vec<u8>) {
        if self.stage == SessionState::Failed {
            return;
        }
        // A session that cannot say it any more is over as well.
        let _ = self.side.write(&mut self.incoming, out, &mut |session, out| {
            let mut buffer = [0; RECORD_OVERHEAD];
            let written = session.close(&mut buffer)?;
            out.extend_from_slice(&buffer[..written]);
            Ok(())
        });
    }

    /// Ends the session with its connection; an error if the other side had not sent `close_notify`.
    pub fn end(&self) -> Result<(), TlsError> {
        match self.stage {
            SessionState::Closed => Ok(()),
            SessionState::Open => Err(TlsError::truncated(false)),
            SessionState::Failed => Err(TlsError::already_failed()),
            SessionState::Silent | SessionState::Handshake => Err(TlsError::truncated(true)),
        }
    }
}

/// Writing in an open session, of a client or a server.
trait TrafficWriter {
    fn encrypt(&mut self, plain: &[u8], buffer: &mut [u8]) -> Result<usize, EncryptError>;
    fn close(&mut self, buffer: &mut [u8]) -> Result<usize, EncryptError>;
}

impl<Data> TrafficWriter for rustls::unbuffered::WriteTraffic<'_, Data> {
    fn encrypt(&mut self, plain: &[u8], buffer: &mut [u8]) -> Result<usize, EncryptError> {
        rustls::unbuffered::WriteTraffic::encrypt(self, plain, buffer)
    }

    fn close(&mut self, buffer: &mut [u8]) -> Result<usize, EncryptError> {
        self.queue_close_notify(buffer)
    }
}

impl Side {
    fn common(&self) -> &CommonState {
        match self {
            Side::Client(client) => client,
            Side::Server(server) => server,
        }
    }

    /// Runs one step of the library, and returns how many bytes are used, and what is next.
    fn step(
        &mut self,
        bytes: &mut [u8],
        plain: &mut dyn FnMut(&[u8]),
        out: &mut Vec<u8>,
    ) -> (usize, Result<StepResult, Error>) {
        match self {
            Side::Client(client) => {
                step::<ClientConnectionData>(client.process_tls_records(bytes), plain, out, None)
            }
            Side::Server(server) => {
                step::<ServerConnectionData>(server.process_tls_records(bytes), plain, out, None)
            }
        }
    }

    /// Writes something that needs an open session. The library must see the bytes that it has not used (`buffered`) at every step: it
    /// has noted where in them a message has begun, and panics if they are not there.
    fn write(
        &mut self,
        buffered: &mut Vec<u8>,
        out: &mut Vec<u8>,
        write: &mut WriteOnce<'_>,
    ) -> Result<(), TlsError> {
        let mut done = false;
        let mut once = |session: &mut dyn TrafficWriter, out: &mut Vec<u8>| {
            done = true;
            write(session, out)
        };
        loop {
            let nothing = &mut |_: &[u8]| ();
            let (discard, next) = match self {
                Side::Client(client) => {
                    step(client.process_tls_records(buffered), nothing, out, Some(&mut once))
                }
                Side::Server(server) => {
                    step(server.process_tls_records(buffered), nothing, out, Some(&mut once))
                }
            };
            buffered.drain(..discard);
            match next? {
                StepResult::Step | StepResult::Read | StepResult::Closed => {}
                StepResult::Wait if done => return Ok(()),
                StepResult::Wait => {
                    let detail = "something was to be sent before the TLS handshake was over";
                    return Err(TlsError::new(TlsErrorKind::Failed, detail));
                }
            }
        }
    }

    /// Appends the alert that belongs to an error. The library is not to do anything else after one; it must see the bytes that it has
    /// not used nevertheless ([`Side::write`]).
    fn write_alert(&mut self, buffered: &mut [u8], out: &mut Vec<u8>) {
        let mut used = 0;
        while self.common().wants_write() {
            let (discard, next) = self.step(&mut buffered[used..], &mut |_| (), out);
            used += discard;
            if !matches!(next, Ok(StepResult::Step)) {
                break;
            }
        }
    }
}

/// Writes while the session is open.
type WriteOnce<'a> = dyn FnMut(&mut dyn TrafficWriter, &mut Vec<u8>) -> Result<(), EncryptError> + 'a;

fn step<Data>(
    status: UnbufferedStatus<'_, '_, Data>,
    plain: &mut dyn FnMut(&[u8]),
    out: &mut Vec<u8>,
    write: Option<&mut WriteOnce<'_>>,
) -> (usize, Result<StepResult, Error>) {
    let UnbufferedStatus { mut discard, state } = status;
    let state = match state {
        Ok(state) => state,
        Err(error) => return (discard, Err(error)),
    };
    let next = match state {
        ConnectionState::ReadTraffic(mut traffic) => {
            while let Some(record) = traffic.next_record() {
                match record {
                    Ok(record) => {
                        plain(record.payload);
                        discard += record.discard;
                    }
                    Err(error) => return (discard, Err(error)),
                }
            }
            StepResult::Read
        }
        ConnectionState::EncodeTlsData(mut data) => {
            // It says how much room it needs, and then uses it.
            if let Err(EncodeError::InsufficientSize(InsufficientSizeError { required_size })) =
                data.encode(&mut [])
            {
                let at = out.len();
                out.resize(at + required_size, 0);
                let written = data.encode(&mut out[at..]).unwrap_or(0);
                out.truncate(at + written);
            }
            StepResult::Step
        }
        // What was appended is sent by the caller.
        ConnectionState::TransmitTlsData(data) => {
            data.done();
            StepResult::Step
        }
        ConnectionState::PeerClosed => StepResult::Closed,
        ConnectionState::WriteTraffic(mut session) => match write.map(|write| write(&mut session, out)) {
            None | Some(Ok(())) => StepResult::Wait,
            Some(Err(error)) => return (discard, Err(Error::General(error.to_string()))),
        },
        // Early data is neither offered nor accepted.
        _ => StepResult::Wait,
    };
    (discard, Ok(next))
}
