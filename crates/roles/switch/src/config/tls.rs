//! Parses the settings of a switch file on TLS and HTTP/2.

use std::net::SocketAddr;
use std::path::PathBuf;

use assay_base::settings::{Fields, Mistake, Value};
use assay_net::tls::settings::TlsVersion;

use super::values::{address, texts};
use super::{CertificateFiles, ClientHttp2, ListenTls, ServerTls};

const TLS: [&str; 2] = ["listen", "min-version"];
const CERTIFICATE: [&str; 2] = ["file", "key"];
const SERVER_TLS: [&str; 4] = ["ca", "name", "verify", "min-version"];

/// Parses `[tls]` and `[[certificate]]`: TLS to clients.
pub(super) fn to_clients(top: &Fields<'_>, clear: &[SocketAddr]) -> Result<Option<ListenTls>, Mistake> {
    let certificates: Vec<CertificateFiles> = top
        .tables("certificate", "[[certificate]]", &CERTIFICATE)?
        .iter()
        .map(|fields| {
            let file = |key: &str, what: &str| Ok(PathBuf::from(fields.need(key, what)?.text()?));
            Ok(CertificateFiles {
                certificate: file("file", "a certificate, with those that lead to its authority (PEM)")?,
                key: file("key", "the private key of the certificate (PEM)")?,
            })
        })
        .collect::<Result<_, Mistake>>()?;
    let Some(value) = top.get("tls") else {
        return match certificates.is_empty() {
            true => Ok(None),
            false => {
                Err(top.wrong("it has a [[certificate]] and no [tls], which says where clients speak TLS"))
            }
        };
    };
    let fields = value.fields("[tls]")?;
    fields.only(&TLS)?;
    fields.need("listen", "where clients connect with TLS, like \"127.0.0.1:8443\"")?;
    let listen = texts(&fields, "listen")?
        .iter()
        .map(|value| {
            let address = address(value)?;
            match address.port() > 0 && clear.contains(&address) {
                true => Err(value.wrong("clients connect there in the clear (`listen`)")),
                false => Ok(address),
            }
        })
        .collect::<Result<_, _>>()?;
    if certificates.is_empty() {
        return Err(value.wrong("it needs a [[certificate]] with `file` and `key`"));
    }
    Ok(Some(ListenTls { listen, certificates, oldest: oldest(&fields)? }))
}

/// Parses `http2`: the clients to which HTTP/2 is spoken.
pub(super) fn http2(top: &Fields<'_>) -> Result<ClientHttp2, Mistake> {
    let Some(value) = top.get("http2") else { return Ok(ClientHttp2::OverTls) };
    match value.text()? {
        "none" => Ok(ClientHttp2::None),
        "tls" => Ok(ClientHttp2::OverTls),
        "all" => Ok(ClientHttp2::All),
        other => Err(value.wrong(&format!("`{other}` means nothing here; there are none, tls, all"))),
    }
}

/// Parses `tls` of a server.
pub(super) fn to_server(value: &Value<'_>) -> Result<ServerTls, Mistake> {
    let fields = value.fields("tls")?;
    fields.only(&SERVER_TLS)?;
    let ca = fields.get("ca").map(|value| value.text().map(PathBuf::from)).transpose()?;
    let is_verified = fields.get("verify").map_or(Ok(true), |value| value.flag())?;
    if is_verified && ca.is_none() {
        return Err(value.wrong(
            "it needs `ca`, the authorities that the server's certificate is verified by (PEM); `verify = false` verifies \
             nothing",
        ));
    }
    Ok(ServerTls {
        ca: ca.filter(|_| is_verified),
        name: fields.get("name").map(|value| value.text().map(str::to_owned)).transpose()?,
        oldest: oldest(&fields)?,
    })
}

/// Parses `http` of a server.
pub(super) fn is_http2(value: &Value<'_>) -> Result<bool, Mistake> {
    match value.text()? {
        "1.1" => Ok(false),
        "2" => Ok(true),
        other => Err(value.wrong(&format!("HTTP/{other} is not spoken to servers; write \"1.1\" or \"2\""))),
    }
}

fn oldest(fields: &Fields<'_>) -> Result<TlsVersion, Mistake> {
    let Some(value) = fields.get("min-version") else { return Ok(TlsVersion::Tls12) };
    let text = value.text()?;
    TlsVersion::from_name(text)
        .ok_or_else(|| value.wrong("TLS 1.2 and 1.3 are spoken; write \"1.2\" or \"1.3\""))
}

#[cfg(test)]
mod tests {
    use super::super::read;
    use super::*;

    const SERVER: &str = "[[server]]\naddress = \"127.0.0.1:9001\"\n";

    fn config(text: &str) -> Result<super::super::Config, String> {
        read("s.toml", &format!("listen = \"127.0.0.1:0\"\n{text}{SERVER}")).map_err(|e| e.to_string())
    }

    #[test]
    fn what_is_not_said_is_modern() {
        let config = config(
            "[tls]\nlisten = [\"127.0.0.1:8443\"]\n[[certificate]]\nfile = \"a.pem\"\nkey = \"a.key\"\n",
        )
        .expect("is right");
        let tls = config.tls.expect("is there");
        assert_eq!(
            (tls.oldest, tls.certificates.len(), config.http2),
            (TlsVersion::Tls12, 1, ClientHttp2::OverTls)
        );
    }

    #[test]
    fn mistakes_say_what_is_missing() {
        let pair = "[[certificate]]\nfile = \"a.pem\"\nkey = \"a.key\"\n";
        for (text, part) in [
            (pair.to_owned(), "no [tls]"),
            ("[tls]\nlisten = \"127.0.0.1:8443\"\n".into(), "needs a [[certificate]]"),
            (format!("[tls]\nmin-version = \"1.3\"\n{pair}"), "where clients connect with TLS"),
            (
                format!("[tls]\nlisten = \"127.0.0.1:0\"\nmin-version = \"1.1\"\n{pair}"),
                "write \"1.2\" or \"1.3\"",
            ),
            ("http2 = \"maybe\"\n".into(), "there are none, tls, all"),
            ("[[server]]\naddress = \"127.0.0.1:9002\"\nhttp = \"3\"\n".into(), "HTTP/3 is not spoken"),
            ("[[server]]\naddress = \"127.0.0.1:9002\"\ntls = {}\n".into(), "needs `ca`"),
        ] {
            let said = config(&text).expect_err("is wrong");
            assert!(said.contains(part), "{text}: {said}");
        }
    }

    #[test]
    fn a_server_is_verified_unless_that_is_declined() {
        let text = "[[server]]\naddress = \"127.0.0.1:9002\"\ntls = { ca = \"ca.pem\", name = \"back.test\" }\n\
                    [[server]]\naddress = \"127.0.0.1:9003\"\ntls = { verify = false }\n";
        let config = config(text).expect("is right");
        let of = |index: usize| config.servers[index].tls.clone().expect("speaks TLS");
        assert_eq!((of(0).ca, of(0).name), (Some("ca.pem".into()), Some("back.test".into())));
        assert_eq!(of(1).ca, None);
        assert_eq!(config.servers[2].tls, None);
    }
}
