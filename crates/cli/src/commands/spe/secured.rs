//! TLS of an evaluation, from its flags. What is wrong with files is found before anything is started.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use assay_role::tls::{ClientTls, Offer, ServerTls};

use super::SpeArgs;
use crate::exit::Failure;

/// What an origin over TLS begins with.
const HTTPS: &str = "https://";

/// How clients are spoken to over TLS; none: in the clear.
pub fn to_clients(args: &SpeArgs) -> Result<Option<ServerTls>, Failure> {
    let (Some(certificate), Some(key)) = (&args.certificate, &args.key) else { return Ok(None) };
    let told =
        ServerTls { offer: Offer::default(), certificate: absolute(certificate)?, key: absolute(key)? };
    assay_plane::tls::server(&told).map_err(Failure::usage)?;
    Ok(Some(told))
}

/// Name and port of an origin, and how it is spoken to over TLS; none: in the clear.
pub fn of(origin: &str, args: &SpeArgs) -> Result<(String, Option<ClientTls>), Failure> {
    let Some(authority) = origin.strip_prefix(HTTPS) else {
        return match args.origin_ca.is_some() || args.origin_insecure {
            true => Err(Failure::usage(anyhow!(
                "--origin-ca and --origin-insecure are for an origin over TLS; write --origin {HTTPS}{origin}"
            ))),
            false => Ok((origin.to_owned(), None)),
        };
    };
    let authority = authority.trim_end_matches('/');
    if args.origin_ca.is_none() && !args.origin_insecure {
        return Err(Failure::usage(anyhow!(
            "the certificate of {origin} cannot be verified; name its authority with --origin-ca FILE, or verify nothing with \
             --origin-insecure"
        )));
    }
    let ca = args.origin_ca.as_deref().map(absolute).transpose()?;
    let told = ClientTls { offer: Offer::default(), ca, resumption: 1.0 };
    assay_plane::tls::client(&told).map_err(Failure::usage)?;
    let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let name = if has_port { authority.to_owned() } else { format!("{authority}:443") };
    Ok((name, Some(told)))
}

fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    let attempt = || format!("cannot make sense of the path {}", path.display());
    std::path::absolute(path).with_context(attempt).map_err(Failure::usage)
}
