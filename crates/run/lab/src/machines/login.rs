//! The connection to a NATS server: where it is, with which credentials, and when it may be used without any.

use std::net::ToSocketAddrs;
use std::path::PathBuf;
use std::time::Duration;

use async_nats::{Client, ConnectErrorKind, ConnectOptions, ServerAddr};

use crate::machines::error::FleetError;

/// Time that the server may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval at which both sides make sure that the other is there.
const PING_INTERVAL: Duration = Duration::from_secs(5);
/// The port of NATS where the URL names none.
const NATS_PORT: u16 = 4222;

/// Address and credentials of a server.
#[derive(Debug, Clone, Default)]
pub struct Login {
    /// URL, like `nats://10.0.0.1:4222`; `tls://` for a server that speaks TLS.
    pub url: String,
    /// A file of credentials (`.creds`), as `nsc` writes it.
    pub credentials: Option<PathBuf>,
    /// A user of the server's configuration.
    pub user: Option<String>,
    /// A file whose first line is the user's password.
    pub password_file: Option<PathBuf>,
    /// Certificates (PEM) of the authorities by which the server's certificate is verified; none: the system's.
    pub ca: Option<PathBuf>,
}

impl Login {
    /// Connects, under a name that the server lists.
    pub async fn connect(&self, name: &str) -> Result<Client, FleetError> {
        let address: ServerAddr = self.url.parse().map_err(|e| {
            FleetError::plan(format!(
                "`{}` is no URL of a NATS server: {e}; write it like nats://10.0.0.1:4222",
                self.url
            ))
        })?;
        let options = self.options(name)?;
        let client =
            options.connect(address.clone()).await.map_err(|e| self.refused(e.kind(), &e.to_string()))?;
        let is_open = !client.server_info().auth_required;
        if is_open && !is_loopback(&address) {
            return Err(FleetError::plan(format!(
                "the NATS server at {} has no authentication: anyone who can reach it could command agents; give it accounts \
                 (docs/how-to/several-machines.md), or use one on loopback",
                self.url
            )));
        }
        Ok(client)
    }

    fn options(&self, name: &str) -> Result<ConnectOptions, FleetError> {
        let mut options = ConnectOptions::new()
            .name(name)
            .connection_timeout(CONNECT_TIMEOUT)
            .ping_interval(PING_INTERVAL)
            .max_reconnects(None);
        if let Some(file) = &self.credentials {
            let read = secret(file).and_then(|text| options.credentials(&text));
            options = read.map_err(|e| cannot_read("credentials", file, &e))?;
        }
        if let Some(user) = &self.user {
            let password = match &self.password_file {
                Some(file) => secret(file).map_err(|e| cannot_read("the password", file, &e))?,
                None => String::new(),
            };
            let password = password.lines().next().unwrap_or_default().to_owned();
            options = options.user_and_password(user.clone(), password);
        }
        if let Some(file) = &self.ca {
            options = options.add_root_certificates(file.clone());
        }
        Ok(options)
    }

    fn refused(&self, kind: ConnectErrorKind, cause: &str) -> FleetError {
        let url = &self.url;
        FleetError::plan(match kind {
            ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => format!(
                "the NATS server at {url} does not accept these credentials ({cause}); name others with --nats-creds, or --nats-user and \
                 --nats-password-file"
            ),
            _ => format!(
                "no NATS server responds at {url}: {cause}; is it running, and is the URL right? `assay fleet up` starts one on this \
                 machine"
            ),
        })
    }
}

/// Whether all that is known of an address is on this machine.
fn is_loopback(address: &ServerAddr) -> bool {
    let port = if address.port() == 0 { NATS_PORT } else { address.port() };
    let found = (address.host(), port).to_socket_addrs();
    found.is_ok_and(|mut all| all.all(|address| address.ip().is_loopback()))
}

/// The text of a file, which may be a pipe from a program that keeps secrets.
fn secret(file: &std::path::Path) -> std::io::Result<String> {
    let bytes = assay_base::files::limited(std::fs::File::open(file)?, assay_base::files::SETTINGS_MAX)?;
    String::from_utf8(bytes)
        .map_err(|_| std::io::Error::new(std::io::ErrorKind::InvalidData, "it is not text (UTF-8)"))
}

fn cannot_read(what: &str, file: &std::path::Path, cause: &std::io::Error) -> FleetError {
    FleetError::plan(format!("cannot read {what} in {}: {cause}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_without_end_is_refused() {
        let error = secret(std::path::Path::new("/dev/zero")).expect_err("is too long");
        assert!(error.to_string().contains("longer than the 16 MiB"), "{error}");
    }

    #[test]
    fn only_addresses_of_this_machine_are_loopback() {
        let is = |url: &str| is_loopback(&url.parse().expect("a URL"));
        assert!(is("nats://127.0.0.1:4222") && is("nats://127.9.9.9:1") && is("nats://[::1]:4222"));
        assert!(!is("nats://10.0.0.1:4222"));
    }
}
