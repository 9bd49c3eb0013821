//! Flags that say who we are at a NATS server. `assay run`, `assay agent` and `assay fleet` share them.

use std::path::PathBuf;

use assay_lab::machines::login::Login;
use clap::Args;

/// Who we are at the server.
#[derive(Debug, Clone, Default, Args)]
pub struct LoginArgs {
    /// Credentials for the NATS server, as `nsc` writes them
    #[arg(long, value_name = "FILE", conflicts_with = "nats_user")]
    pub nats_creds: Option<PathBuf>,
    /// User at the NATS server; its password is the first line of --nats-password-file
    #[arg(long, value_name = "NAME", requires = "nats_password_file")]
    pub nats_user: Option<String>,
    /// File with the password of --nats-user
    #[arg(long, value_name = "FILE", requires = "nats_user")]
    pub nats_password_file: Option<PathBuf>,
    /// Certificates (PEM) of the authorities trusted to sign the NATS server's certificate [default: the system's]
    #[arg(long, value_name = "FILE")]
    pub nats_ca: Option<PathBuf>,
}

impl LoginArgs {
    /// The way to the server at this URL.
    pub fn login(&self, url: &str) -> Login {
        Login {
            url: url.to_owned(),
            credentials: self.nats_creds.clone(),
            user: self.nats_user.clone(),
            password_file: self.nats_password_file.clone(),
            ca: self.nats_ca.clone(),
        }
    }
}
