//! TLS on the connections of robots: sessions, handshakes, and their failures.

use std::io::{self, ErrorKind as IoErrorKind};

use assay_base::clock::monotonic_ns;
use assay_measurement::error_kind::ErrorKind;
use assay_net::byte_stream::{ByteStream, Handshake, tls_error};
use assay_net::tls::HTTP_2;
use assay_net::tls::error::{TlsError, TlsErrorKind};
use assay_workload::model::HttpVersion;
use socket2::Socket;

use super::connection::{ConnectionKey, ConnectionStage};
use super::recorder::Received;
use super::setup::RobotSetup;
use super::worker::{Robot, Trigger, Worker};
use super::xact::XactKey;

/// Byte stream of a robot's connection of this serial to an origin or to what stands for it.
pub fn byte_stream(
    setup: &RobotSetup,
    robot: &mut Robot,
    socket: Socket,
    serial: u32,
    origin: u16,
) -> io::Result<ByteStream<Socket>> {
    let Some(tls) = &setup.tls else { return Ok(ByteStream::cleartext(socket)) };
    let client = robot.tls.get_or_insert_with(|| {
        Box::new(match robot.version {
            HttpVersion::Http2 => tls.client.with_protocol(HTTP_2),
            _ => tls.client.with_own_sessions(),
        })
    });
    let resumes = setup.resumes(tls, robot.index, serial);
    let session = client.connect(tls.name_of(origin), resumes);
    Ok(ByteStream::over_tls(socket, session.map_err(io::Error::other)?))
}

impl Worker {
    /// Goes on with the TLS handshake of a connection.
    #[cold]
    pub fn secure(&mut self, connection_key: ConnectionKey) {
        let connection = &mut self.connections[connection_key];
        match connection.transport.handshake() {
            Ok(()) => {}
            Err(error) if error.kind() == IoErrorKind::WouldBlock => return,
            Err(error) => return self.fail_to_secure(connection_key, &error),
        }
        let handshake = connection.transport.take_handshake();
        let is_multiplexed = connection.streams.is_some();
        if is_multiplexed && handshake.as_ref().is_some_and(|handshake| !handshake.negotiated.is_http2) {
            let why = "the target did not agree to speak HTTP/2 (ALPN `h2`)";
            let error = TlsError::new(TlsErrorKind::NoCommonParameters, why);
            return self.fail_to_secure(connection_key, &io::Error::other(error));
        }
        connection.stage = ConnectionStage::Established;
        if let Some(handshake) = handshake {
            self.note_handshake(connection_key, &handshake);
        }
        match is_multiplexed {
            true => self.flush_streams(connection_key),
            false => self.begin_requests(connection_key, monotonic_ns()),
        }
    }

    /// Counts a handshake, and notes its end with the requests of the connection.
    fn note_handshake(&mut self, connection_key: ConnectionKey, handshake: &Handshake) {
        let connection = &self.connections[connection_key];
        let xacts: Vec<XactKey> = connection.xact.into_iter().chain(connection.xacts_on_streams()).collect();
        let mut begun_ns = handshake.begun_ns;
        for xact_key in &xacts {
            let xact = &mut self.xacts[*xact_key];
            xact.secured_ns = Some(handshake.ended_ns);
            begun_ns = begun_ns.max(xact.connected_ns.unwrap_or(0));
        }
        let phase = xacts.first().map_or(self.phase(), |xact_key| self.xacts[*xact_key].phase);
        let recorder = self.recorder.phase(phase);
        recorder.times.handshake.record(handshake.ended_ns.saturating_sub(begun_ns) / 1_000);
        let counts = &mut recorder.counts;
        let session =
            if handshake.negotiated.resumed { &mut counts.tls_resumed } else { &mut counts.tls_full };
        *session += 1;
        let name = format!("{} {}", handshake.negotiated.version, handshake.negotiated.cipher);
        *counts.by_tls.entry(name).or_default() += 1;
    }

    /// Fails the requests that a connection was made for, as its TLS handshake failed.
    fn fail_to_secure(&mut self, connection_key: ConnectionKey, error: &io::Error) {
        let robot = self.connections[connection_key].robot;
        let kind = tls_error(error).map_or(ErrorKind::TlsFailed, kind_of_tls);
        let advice = tls_error(error).map_or("look at the log of the target", |error| error.kind.advice());
        let trigger = &Trigger::UNDELAYED;
        self.fail_unestablished(connection_key, |worker, xact_key, address| {
            let detail = format!("cannot speak TLS to {address}: {error}; {advice}");
            worker.fail(xact_key, kind, &detail, Received::NOTHING, monotonic_ns(), trigger);
        });
        self.fill_slots(robot, trigger);
    }
}

/// Class of an error of TLS.
pub fn kind_of_tls(error: &TlsError) -> ErrorKind {
    match error.kind {
        TlsErrorKind::CertificateExpired => ErrorKind::TlsCertificateExpired,
        TlsErrorKind::CertificateName => ErrorKind::TlsCertificateName,
        TlsErrorKind::CertificateUntrusted => ErrorKind::TlsCertificateUntrusted,
        TlsErrorKind::NoCommonParameters => ErrorKind::TlsNoCommonParameters,
        TlsErrorKind::NotTls => ErrorKind::TlsNotSpoken,
        TlsErrorKind::Truncated => ErrorKind::TlsTruncated,
        // Robots show no certificates, and choose none.
        TlsErrorKind::CertificateRefused | TlsErrorKind::NameRefused | TlsErrorKind::Failed => {
            ErrorKind::TlsFailed
        }
    }
}
