//! Certificates, and the address at which a switch shows them.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use assay_net::tls::authority::{Authority, KeyKind, Validity};
use assay_switch::Switch;
use tempfile::TempDir;

/// A directory with certificates: for `one.test` and `two.test`, with the authority of both.
pub struct Files {
    pub dir: TempDir,
    pub authority: Authority,
}

impl Files {
    pub fn new() -> Self {
        let files = Self { dir: tempfile::tempdir().expect("there is room"), authority: authority() };
        files.write("ca.pem", &files.authority.certificate);
        for name in ["one", "two"] {
            files.issue(name, &files.authority);
        }
        files
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("there is room");
    }

    /// Writes the certificate of `NAME.test`.
    pub fn issue(&self, name: &str, authority: &Authority) {
        let identity = authority.issue(&[format!("{name}.test")], validity()).expect("can be made");
        self.write(&format!("{name}.pem"), &identity.certificate);
        self.write(&format!("{name}.key"), &identity.key);
    }

    /// The part of a switch file about TLS to clients.
    pub fn toml(&self, names: &[&str]) -> String {
        let dir = self.dir.path().display();
        let certificates = names.iter().map(|name| {
            format!("[[certificate]]\nfile = \"{dir}/{name}.pem\"\nkey = \"{dir}/{name}.key\"\n")
        });
        format!("[tls]\nlisten = \"127.0.0.1:0\"\n{}", certificates.collect::<String>())
    }
}

fn validity() -> Validity {
    Validity::around(SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs())
}

pub fn authority() -> Authority {
    Authority::new(KeyKind::P256, validity()).expect("can be made")
}

/// The address at which a switch speaks TLS: that behind the one in the clear.
pub fn secured(switch: &Switch) -> SocketAddr {
    switch.addresses()[1]
}
