//! TLS of a replay, from its flags. What is wrong with files is found before anything is sent.

use anyhow::anyhow;
use assay_load::replay::ReplayTls;
use assay_net::tls::settings::{ClientTls, Offer};

use super::ReplayArgs;
use crate::exit::Failure;

/// Scheme of an address that speaks TLS.
const HTTPS: &str = "https://";

/// True for an address that speaks TLS.
pub fn is_https(to: &str) -> bool {
    to.starts_with(HTTPS)
}

/// Host and port of an address, without what says how it is spoken to.
pub fn authority(to: &str) -> &str {
    to.strip_prefix(HTTPS).map_or(to, |rest| rest.trim_end_matches('/'))
}

/// True where `https` URLs are left out: a forward proxy would have to open tunnels to hosts that nobody says how to verify.
/// Simulated origins speak in the clear, whatever the log says.
pub fn skips_https(args: &ReplayArgs) -> bool {
    args.forward && !args.through.is_wanted() && !is_trust_said(args)
}

fn is_trust_said(args: &ReplayArgs) -> bool {
    args.ca.is_some() || args.insecure
}

/// TLS parameters of the replay; none: in the clear.
pub fn tls(args: &ReplayArgs) -> Result<Option<ReplayTls>, Failure> {
    let to = args.to.as_deref().unwrap_or_default();
    let to_address = is_https(to);
    if to_address && args.forward {
        let why = anyhow!("TLS between a client and a forward proxy is not supported");
        let rest = authority(to);
        return Err(Failure::usage(why).hint(format!(
            "write --to {rest} --forward: `https` URLs go through tunnels, over TLS with their hosts"
        )));
    }
    if to_address && !is_trust_said(args) {
        let why = anyhow!("the certificate of {to} cannot be verified");
        return Err(
            Failure::usage(why).hint("name its authority with --ca FILE, or verify nothing with --insecure")
        );
    }
    if !is_trust_said(args) {
        return Ok(None);
    }
    if !to_address && (!args.forward || args.through.is_wanted()) {
        let why = anyhow!("--ca and --insecure are for TLS, and {to} is sent to in the clear");
        return Err(Failure::usage(why).hint(format!("if it speaks TLS, write --to {HTTPS}{to}")));
    }
    let told = ClientTls { offer: Offer::default(), ca: args.ca.clone(), resumption: 1.0 };
    let client = assay_net::tls::setup::client(&told).map_err(Failure::usage)?;
    Ok(Some(ReplayTls { client, to_address }))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command};

    fn told(flags: &str) -> Result<Option<bool>, String> {
        let words = ["assay", "replay", "access.log"].into_iter().chain(flags.split_whitespace());
        let Command::Replay(args) = Cli::parse_from(words).command else { panic!("not a replay") };
        tls(&args).map(|tls| tls.map(|tls| tls.to_address)).map_err(|failure| format!("{:#}", failure.error))
    }

    #[test]
    fn what_is_verified_and_how_has_to_be_said() {
        assert_eq!(told("--to a:80"), Ok(None));
        assert_eq!(told("--to https://a:443 --insecure"), Ok(Some(true)));
        assert_eq!(told("--to a:3128 --forward --insecure"), Ok(Some(false)));
        assert!(told("--to https://a:443").unwrap_err().contains("cannot be verified"));
        assert!(told("--to a:80 --insecure").unwrap_err().contains("in the clear"));
        assert!(told("--to https://a:3128 --forward --insecure").unwrap_err().contains("forward proxy"));
        assert!(told("--to https://a:443 --ca /nowhere/ca.pem").unwrap_err().contains("/nowhere/ca.pem"));
    }

    #[test]
    fn https_urls_are_left_out_only_where_a_tunnel_would_lead_to_a_host_that_is_not_verified() {
        let skips = |flags: &str| {
            let words = ["assay", "replay", "access.log"].into_iter().chain(flags.split_whitespace());
            let Command::Replay(args) = Cli::parse_from(words).command else { panic!("not a replay") };
            skips_https(&args)
        };
        assert!(skips("--to a:3128 --forward"));
        for sent in ["--to a:3128 --forward --insecure", "--to a:80", "--proxy squid --forward"] {
            assert!(!skips(sent), "{sent}");
        }
        assert_eq!(authority("https://a.example:8443/"), "a.example:8443");
    }
}
