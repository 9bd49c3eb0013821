//! A browser without a screen, all of whose files (profile, sockets, downloads under way) lie in one directory that goes
//! with it.

use std::process::Command;

use tempfile::TempDir;

/// Directory of a browser's files.
#[derive(Debug)]
pub struct Browser(TempDir);

impl Browser {
    /// Makes room for its files.
    #[expect(clippy::new_without_default, reason = "it makes a directory")]
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary directory"))
    }

    /// Adds to a command that starts a Chromium what every test gives it.
    pub fn set_up(&self, mut command: Command) -> Command {
        command
            .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
            .arg("--no-first-run")
            .arg(format!("--user-data-dir={}", self.0.path().join("profile").display()))
            // Beside its profile it makes directories for sockets, which it leaves when it is killed.
            .env("TMPDIR", self.0.path());
        command
    }
}
