//! TLS on the connections of robots: sessions, handshakes, and their failures.

use std::io::{self, ErrorKind as IoErrorKind};

use assay_base::clock::monotonic_ns;
use assay_measurement::error_kind::ErrorKind;
use assay_net::byte_stream::{ByteStream, Handshake, tls_error};
use assay_net::tls::HTTP_2;
use assay_net::tls::error::{TlsError, TlsErrorKind};
use assay_workload::model::HttpVersion;
use socket2::Socket;

use super::connection::ConnectionStage;
use super::worker::Worker;

impl Worker {
    /// Wraps a connection into its byte stream. It has this serial, and goes to an origin or to what stands for it.
    pub(super) fn on(
        &mut self,
        socket: Socket,
        robot: u32,
        serial: u32,
        origin: u16,
    ) -> io::Result<ByteStream<Socket>> {
        let Some(tls) = &self.setup.tls else { return Ok(ByteStream::cleartext(socket)) };
        let robot = &mut self.robots[robot as usize];
        let client = robot.tls.get_or_insert_with(|| {
            Box::new(match robot.version {
                HttpVersion::Http2 => tls.client.with_protocol(HTTP_2),
                _ => tls.client.with_own_sessions(),
            })
        });
        let resumes = self.setup.resumes(tls, robot.index, serial);
        let session = client.connect(tls.name_of(origin), resumes);
        Ok(ByteStream::over_tls(socket, session.map_err(io::Error::other)?))
    }

    /// Goes on with the TLS handshake of a connection.
    #[cold]
    pub fn secure(&mut self, slot: u32) {
        let connection = &mut self.connections[slot as usize];
        match connection.transport.handshake() {
            Ok(()) => {}
            Err(error) if error.kind() == IoErrorKind::WouldBlock => return,
            Err(error) => return self.fail_to_secure(slot, &error),
        }
        let handshake = connection.transport.take_handshake();
        let is_multiplexed = connection.streams.is_some();
        if is_multiplexed && handshake.as_ref().is_some_and(|handshake| !handshake.negotiated.is_http2) {
            let why = "the target did not agree to speak HTTP/2 (ALPN `h2`)";
            let error = TlsError::new(TlsErrorKind::NoCommonParameters, why);
            return self.fail_to_secure(slot, &io::Error::other(error));
        }
        connection.stage = ConnectionStage::Established;
        if let Some(handshake) = handshake {
            self.note_handshake(slot, &handshake);
        }
        match is_multiplexed {
            true => self.flush_streams(slot),
            false => self.begin_requests(slot, monotonic_ns()),
        }
    }

    /// Counts a handshake, and notes its end with the requests of the connection.
    fn note_handshake(&mut self, slot: u32, handshake: &Handshake) {
        let connection = &self.connections[slot as usize];
        let places: Vec<u32> = match &connection.streams {
            Some(streams) => streams.iter().map(|exchange| exchange.xact).collect(),
            None => vec![connection.xact],
        };
        let mut begun_ns = handshake.begun_ns;
        for place in &places {
            let xact = &mut self.xacts[*place as usize];
            xact.secured_ns = handshake.ended_ns;
            begun_ns = begun_ns.max(xact.connected_ns);
        }
        let phase = places.first().map_or(self.phase(), |place| self.xacts[*place as usize].phase);
        let recorder = self.recorder(phase);
        recorder.handshake.record(handshake.ended_ns.saturating_sub(begun_ns) / 1_000);
        let counts = &mut recorder.counts;
        let session =
            if handshake.negotiated.resumed { &mut counts.tls_resumed } else { &mut counts.tls_full };
        *session += 1;
        let name = format!("{} {}", handshake.negotiated.version, handshake.negotiated.cipher);
        *counts.by_tls.entry(name).or_default() += 1;
    }

    /// Fails the requests that a connection was made for, as its TLS handshake failed.
    fn fail_to_secure(&mut self, slot: u32, error: &io::Error) {
        let connection = &self.connections[slot as usize];
        let (place, robot) = (connection.xact, connection.robot);
        let kind = tls_error(error).map_or(ErrorKind::TlsFailed, kind_of_tls);
        let advice = tls_error(error).map_or("look at the log of the target", |error| error.kind.advice());
        let detail = |address| format!("cannot speak TLS to {address}: {error}; {advice}");
        if connection.streams.is_some() {
            self.fail_streams_to_open(slot, |worker, place, address| {
                worker.fail(place, kind, &detail(address), (0, None), monotonic_ns());
            });
        } else {
            let xact = &self.xacts[place as usize];
            let address = self.setup.route(xact.id.robot, xact.object.id.origin).address;
            self.close_and_resend_pipelined(slot);
            self.fail(place, kind, &detail(address), (0, None), monotonic_ns());
        }
        self.fill_slots(robot);
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
