//! Proxies under test that get their requests over TLS, and the authorities that verify their certificates.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::anyhow;
use assay_lab::harness::{ProxyChoice, TestedProxy};
use assay_net::tls::settings::{ClientTls, Offer};

use super::SpeArgs;
use super::secured::{HTTPS, absolute, with_port};
use crate::exit::Failure;

/// Splits the value of `--proxy` into its text without `https://`, and whether it had that. Anything but the name of
/// a proxy that could be started is a host, whose port may be left out.
pub fn split(typed: &str, dirs: &[PathBuf]) -> (String, bool) {
    let (label, name) = typed.split_once('=').map_or((None, typed), |(label, name)| (Some(label), name));
    let Some(address) = name.strip_prefix(HTTPS) else { return (typed.to_owned(), false) };
    let address = address.trim_end_matches('/');
    // Words that mean no host: what is wrong with them here is said where labels are known.
    let is_word = matches!(address, "builtin" | "builtin:embedded" | "builtin:links" | "direct");
    let is_host = !is_word && assay_lab::find(address, dirs).is_err();
    let address = if is_host { with_port(address) } else { address.to_owned() };
    (label.map_or_else(|| address.clone(), |label| format!("{label}={address}")), true)
}

/// By label, the authority (`host:port`) for whose host the certificate of a proxy is verified; proxies that are not in it are spoken to in
/// the clear. `typed` are the proxies as [`split`] gives them; a reverse proxy stands for the host of `origin`.
pub fn destinations(
    args: &SpeArgs,
    typed: &[(String, bool)],
    proxies: &[TestedProxy],
    origin: Option<&str>,
) -> Result<BTreeMap<String, String>, Failure> {
    let mut found = BTreeMap::new();
    for ((typed, is_https), proxy) in typed.iter().zip(proxies) {
        if *is_https {
            let address = typed.split_once('=').map_or(typed.as_str(), |(_, address)| address);
            if !matches!(proxy.choice, ProxyChoice::Running(_)) {
                return Err(Failure::usage(anyhow!(
                    "--proxy {HTTPS}{address}: {HTTPS} is for the HOST:PORT of a proxy that runs already"
                ))
                .hint(format!("for one that is started: --proxy {address} --proxy-tls {}", proxy.label)));
            }
            found.insert(proxy.label.clone(), origin.unwrap_or(address).to_owned());
        }
    }
    for label in &args.proxy_tls {
        let of = proxies.iter().find(|proxy| proxy.label == *label);
        let refused =
            |why: String, hint: String| Failure::usage(anyhow!("--proxy-tls {label}: {why}")).hint(hint);
        match (of.map(|proxy| &proxy.choice), origin) {
            (None, _) => {
                let labels: Vec<&str> = proxies.iter().map(|proxy| proxy.label.as_str()).collect();
                return Err(refused(
                    format!("no proxy is called `{label}`"),
                    format!("there are: {}", labels.join(", ")),
                ));
            }
            (Some(ProxyChoice::Running(address)), _) => {
                return Err(refused(
                    "it runs already".into(),
                    format!("write --proxy {label}={HTTPS}{address}"),
                ));
            }
            (_, None) => {
                return Err(refused(
                    "a forward proxy that is started is spoken to in the clear".into(),
                    format!("leave it out, or start one that speaks TLS yourself: --proxy {HTTPS}HOST:PORT"),
                ));
            }
            (_, Some(origin)) => drop(found.insert(label.clone(), origin.to_owned())),
        }
    }
    Ok(found)
}

/// Verification of the certificates of proxies that run already; none: no such proxy is spoken to over TLS.
pub fn trust(args: &SpeArgs, typed: &[(String, bool)]) -> Result<Option<ClientTls>, Failure> {
    let is_wanted = typed.iter().any(|(_, is_https)| *is_https);
    let is_said = args.proxy_ca.is_some() || args.proxy_insecure;
    match (is_wanted, is_said) {
        (false, false) => return Ok(None),
        (false, true) => {
            return Err(Failure::usage(anyhow!(
                "--proxy-ca and --proxy-insecure are for proxies that run already and speak TLS; write --proxy {HTTPS}HOST:PORT"
            )));
        }
        (true, false) => {
            return Err(Failure::usage(anyhow!(
                "the certificate of a proxy that runs already cannot be verified; name its authority with --proxy-ca FILE, or verify \
                 nothing with --proxy-insecure"
            )));
        }
        (true, true) => {}
    }
    let ca = args.proxy_ca.as_deref().map(absolute).transpose()?;
    let told = ClientTls { offer: Offer::default(), ca, resumption: 1.0 };
    assay_net::tls::setup::client(&told).map_err(Failure::usage)?;
    Ok(Some(told))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_over_tls_may_leave_out_its_port_unless_it_is_one_that_is_started() {
        for (typed, expected) in [
            ("https://cache.example", "cache.example:443"),
            ("https://cache.example:8443/", "cache.example:8443"),
            ("edge=https://[::1]", "edge=[::1]:443"),
            ("https://192.0.2.1/", "192.0.2.1:443"),
            ("https://builtin.example", "builtin.example:443"),
            ("https://nginx/", "nginx"),
            ("https://builtin", "builtin"),
            ("https://direct", "direct"),
        ] {
            assert_eq!(split(typed, &[]), (expected.to_owned(), true), "{typed}");
        }
        assert_eq!(split("cache.example:80", &[]), ("cache.example:80".to_owned(), false));
    }
}
