//! TLS of an evaluation, from its flags. What is wrong with files is found before anything is started.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use assay_net::tls::settings::AuthorityFiles;
use assay_net::tls::settings::{ClientTls, Offer, ServerTls};
use assay_net::tls::setup::TlsSetupError;

use super::{SpeArgs, authority};
use crate::exit::Failure;

/// Scheme of an origin over TLS.
pub const HTTPS: &str = "https://";

/// TLS towards clients; none: in the clear.
pub fn to_clients(args: &SpeArgs) -> Result<Option<ServerTls>, Failure> {
    let (Some(certificate), Some(key)) = (&args.certificate, &args.key) else { return Ok(None) };
    let told =
        ServerTls { offer: Offer::default(), certificate: absolute(certificate)?, key: absolute(key)? };
    assay_net::tls::setup::server(&told).map_err(Failure::usage)?;
    Ok(Some(told))
}

/// Name and port of an origin, and how it is spoken to over TLS; none: in the clear.
pub fn origin_and_tls(origin: &str, args: &SpeArgs) -> Result<(String, Option<ClientTls>), Failure> {
    let Some(authority) = origin.strip_prefix(HTTPS) else {
        return match args.origin_ca.is_some() || args.origin_insecure {
            true => Err(Failure::usage(anyhow!(
                "--origin-ca and --origin-insecure are for an origin over TLS; write --origin {HTTPS}{origin}"
            ))),
            false => Ok((origin.to_owned(), None)),
        };
    };
    if args.origin_ca.is_none() && !args.origin_insecure {
        return Err(Failure::usage(anyhow!(
            "the certificate of {origin} cannot be verified; name its authority with --origin-ca FILE, or verify nothing with \
             --origin-insecure"
        )));
    }
    let ca = args.origin_ca.as_deref().map(absolute).transpose()?;
    let told = ClientTls { offer: Offer::default(), ca, resumption: 1.0 };
    assay_net::tls::setup::client(&told).map_err(Failure::usage)?;
    Ok((with_port(authority), Some(told)))
}

/// `HOST:PORT` of what stands behind `https://`, where the port may be left out (RFC 9110, section 4.2.2).
pub fn with_port(authority: &str) -> String {
    let authority = authority.trim_end_matches('/');
    let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    if has_port { authority.to_owned() } else { format!("{authority}:443") }
}

/// Files of the authorities that systems trust: Debian, Fedora, openSUSE, Alpine.
const OF_THE_SYSTEM: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// With which authority tunnels are opened, and how the servers that they lead to are verified; none: tunnels stay closed.
pub fn intercept(args: &SpeArgs) -> Result<Option<(AuthorityFiles, ClientTls)>, Failure> {
    let Some(dir) = &args.intercept else { return Ok(None) };
    let files = authority::files(&absolute(dir)?);
    assay_net::tls::setup::interceptor(&files).map_err(|error| {
        let hint = match error {
            TlsSetupError::Read { .. } => "make an authority first: assay spe authority DIR",
            _ => "make another authority, in another directory: assay spe authority DIR",
        };
        Failure::usage(error).hint(hint)
    })?;
    is_private(&files.key)?;
    let ca = match &args.origin_ca {
        Some(file) => absolute(file)?,
        None => OF_THE_SYSTEM.iter().map(PathBuf::from).find(|file| file.is_file()).ok_or_else(|| {
            Failure::usage(anyhow!(
                "this system has no file of authorities where it was looked for ({}), so https servers cannot be verified; name \
                 one with --origin-ca FILE",
                OF_THE_SYSTEM.join(", ")
            ))
        })?,
    };
    let told = ClientTls { offer: Offer::default(), ca: Some(ca), resumption: 0.0 };
    assay_net::tls::setup::client(&told).map_err(Failure::usage)?;
    Ok(Some((files, told)))
}

/// Whoever has this key can read the traffic of everybody who trusts its authority.
fn is_private(key: &Path) -> Result<(), Failure> {
    let shown = key.display();
    let mode = std::fs::metadata(key)
        .with_context(|| format!("cannot look at {shown}"))
        .map_err(Failure::usage)?
        .mode();
    match mode & 0o077 {
        0 => Ok(()),
        _ => Err(Failure::usage(anyhow!(
            "{shown} can be read by others than its owner (mode {:03o}), and whoever has it can read what all send who trust its \
             authority; chmod 600 {shown}, and if others have read it, make another authority",
            mode & 0o777
        ))),
    }
}

pub fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    let attempt = || format!("cannot make sense of the path {}", path.display());
    std::path::absolute(path).with_context(attempt).map_err(Failure::usage)
}
