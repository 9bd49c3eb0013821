//! TLS on a connection of a robot: its session, its handshake, and what becomes of a handshake that fails.

use std::io::{self, ErrorKind as IoErrorKind};

use assay_measurement::error_kind::ErrorKind;
use assay_plane::byte_stream::{ByteStream, tls_error};
use assay_plane::clock::monotonic_ns;
use assay_tls::error::{TlsError, TlsErrorKind};
use assay_workload::model::OriginIndex;
use socket2::Socket;

use super::connection::Stage;
use super::crew::Crew;

impl Crew {
    /// The byte stream of a robot's connection of this serial, which goes to an origin or to what stands for it.
    pub fn on(
        &mut self,
        socket: Socket,
        robot: u32,
        serial: u32,
        origin: OriginIndex,
    ) -> io::Result<ByteStream<Socket>> {
        let Some(tls) = &self.setup.tls else { return Ok(ByteStream::clear(socket)) };
        let robot = &mut self.robots[robot as usize];
        let client = robot.tls.get_or_insert_with(|| Box::new(tls.client.forgetful()));
        let resumes = self.setup.resumes(tls, robot.index, serial);
        let session = client.connect(tls.name_of(origin), resumes);
        Ok(ByteStream::secured(socket, session.map_err(io::Error::other)?))
    }

    /// Goes on with the TLS handshake of a connection.
    #[cold]
    pub fn secure(&mut self, slot: u32) {
        let connection = &mut self.connections[slot as usize];
        match connection.transport.shake_hands() {
            Ok(()) => {}
            Err(error) if error.kind() == IoErrorKind::WouldBlock => return,
            Err(error) => return self.fail_to_secure(slot, &error),
        }
        connection.stage = Stage::Established;
        let place = connection.xact;
        let handshake = connection.transport.take_handshake();
        let phase = self.xacts[place as usize].phase;
        if let Some(handshake) = handshake {
            let xact = &mut self.xacts[place as usize];
            xact.secured_ns = handshake.ended_ns;
            let took_us = handshake.ended_ns.saturating_sub(xact.connected_ns) / 1_000;
            let recorder = self.recorder(phase);
            recorder.handshake.record(took_us);
            let session = if handshake.agreed.resumed {
                &mut recorder.counts.tls_resumed
            } else {
                &mut recorder.counts.tls_full
            };
            *session += 1;
            let name = format!("{} {}", handshake.agreed.version, handshake.agreed.cipher);
            *recorder.counts.by_tls.entry(name).or_default() += 1;
        }
        self.begin_requests(slot, monotonic_ns());
    }

    /// The TLS handshake of a connection failed: that is the error of the request that it was made for.
    fn fail_to_secure(&mut self, slot: u32, error: &io::Error) {
        let connection = &self.connections[slot as usize];
        let (place, robot) = (connection.xact, connection.robot);
        let xact = &self.xacts[place as usize];
        let address = self.setup.route(xact.id.robot, xact.object.id.origin).address;
        let kind = tls_error(error).map_or(ErrorKind::TlsFailed, kind_of_tls);
        let advice = tls_error(error).map_or("look at the log of the target", |error| error.kind.advice());
        let detail = format!("cannot speak TLS to {address}: {error}; {advice}");
        self.close_and_go_on(slot);
        self.fail(place, kind, &detail, (0, None), monotonic_ns());
        self.fill_slots(robot);
    }
}

/// The class of an error of TLS.
pub fn kind_of_tls(error: &TlsError) -> ErrorKind {
    match error.kind {
        TlsErrorKind::CertificateExpired => ErrorKind::TlsCertificateExpired,
        TlsErrorKind::CertificateName => ErrorKind::TlsCertificateName,
        TlsErrorKind::CertificateUntrusted => ErrorKind::TlsCertificateUntrusted,
        TlsErrorKind::NoCommonParameters => ErrorKind::TlsNoCommonParameters,
        TlsErrorKind::NotTls => ErrorKind::TlsNotSpoken,
        TlsErrorKind::Truncated => ErrorKind::TlsTruncated,
        // Robots show no certificates.
        TlsErrorKind::CertificateRefused | TlsErrorKind::Failed => ErrorKind::TlsFailed,
    }
}
