//! `assay spe authority`: an authority of the user's own, for `assay spe --intercept`.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, anyhow};
use assay_net::tls::authority::{Authority, KeyKind, Validity};
use assay_net::tls::intercept::AUTHORITY_NAME;
use assay_net::tls::settings::AuthorityFiles;
use clap::Args;

use crate::exit::{Exit, Failure};
use crate::output;

const EXAMPLES: &str = "\
Examples:
  assay spe authority ~/assay-authority
  assay spe --listen 127.0.0.1:3128 --intercept ~/assay-authority --proxy squid

Whoever has the key can read what everybody sends who trusts the certificate. docs/how-to/open-tunnels.md says where not to install \
it, what the people must agree to, and how to remove it.";

/// Flags of `assay spe authority`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct AuthorityArgs {
    /// Where certificate and key go; what is there is never overwritten
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
}

/// Files of an authority in its directory.
pub fn files(dir: &Path) -> AuthorityFiles {
    AuthorityFiles { certificate: dir.join("authority.pem"), key: dir.join("authority.key") }
}

/// Makes an authority, whose key only its owner can read.
pub fn make(args: &AuthorityArgs) -> Result<Exit, Failure> {
    let files = files(&args.dir);
    for path in [&files.certificate, &files.key] {
        if path.symlink_metadata().is_ok() {
            return Err(Failure::usage(anyhow!(
                "there is {} already, and an authority is never overwritten; name another directory, or remove that one wherever it is \
                 trusted first",
                path.display()
            )));
        }
    }
    let cannot = |path: &Path| format!("cannot write {}", path.display());
    let made = DirBuilder::new().recursive(true).mode(0o700).create(&args.dir);
    made.with_context(|| cannot(&args.dir)).map_err(Failure::failed)?;
    let now_unix_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let authority = Authority::named(AUTHORITY_NAME, KeyKind::P256, Validity::around(now_unix_s))
        .map_err(Failure::failed)?;
    write(&files.key, 0o600, &authority.key())
        .with_context(|| cannot(&files.key))
        .map_err(Failure::failed)?;
    let written = write(&files.certificate, 0o644, &authority.certificate);
    written.with_context(|| cannot(&files.certificate)).map_err(Failure::failed)?;
    output::stdout(&format!(
        "{}: the certificate of \"{AUTHORITY_NAME} ({})\", valid for a year; clients whose tunnels are to be opened must trust it\n\
         {}: its key; whoever has it can read what these clients send\n\
         next: assay spe --intercept {}\n",
        files.certificate.display(),
        authority.id(),
        files.key.display(),
        args.dir.display(),
    ))?;
    Ok(Exit::Fine)
}

/// Writes a file that must not be there.
fn write(path: &Path, mode: u32, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    file.write_all(text.as_bytes())
}
