//! Runs the binary and reads what it says.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

/// A directory below `tests/e2e/workloads`.
pub fn workload(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/workloads").join(name)
}

/// A loopback address that no other test of this process, and hardly any of another, uses.
pub fn own_address(port: u16) -> SocketAddr {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let n = NEXT.fetch_add(1, Ordering::Relaxed);
    let pid = std::process::id();
    let ip = [127, 128 + (pid >> 8 & 0x7f) as u8, (pid & 0xff) as u8, n as u8];
    SocketAddr::from((ip, port))
}

/// What a run with `--json` said.
pub struct Ran {
    /// Exit code.
    pub code: i32,
    /// The document.
    pub json: Value,
    /// Where the record is; removed when dropped.
    _directory: tempfile::TempDir,
}

/// Runs `assay run … --json` in a fresh run directory.
///
/// # Panics
/// When the output is not one JSON document.
pub fn run(args: &[&str]) -> Ran {
    // One run at a time: each wants the machine to itself.
    static MACHINE: Mutex<()> = Mutex::new(());
    let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = tempfile::tempdir().expect("the temp directory is writable");
    let run_dir = directory.path().join("run");
    let output = assay(
        &[&["run", "--json", "--no-live", "--run-dir", run_dir.to_str().expect("UTF-8")], args].concat(),
    );
    let stderr = String::from_utf8_lossy(&output.stderr);
    let json = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}; exit {:?}; stderr:\n{stderr}", output.status.code()));
    Ran { code: output.status.code().unwrap_or(-1), json, _directory: directory }
}

/// Runs the binary.
pub fn assay(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_assay")).args(args).output().expect("the binary starts")
}

impl Ran {
    /// A number at a path like `total.dhr.measured`; none where the document says null.
    pub fn number(&self, path: &str) -> Option<f64> {
        at(&self.json, path).as_f64()
    }

    /// Errors of one kind in the whole run.
    pub fn errors(&self, kind: &str) -> u64 {
        self.json["total"]["errors"]["by_kind"][kind].as_u64().unwrap_or(0)
    }

    /// Errors of all kinds in the whole run.
    pub fn errors_total(&self) -> u64 {
        self.json["total"]["errors"]["total"].as_u64().expect("errors.total is a count")
    }

    /// The phases.
    pub fn phases(&self) -> &[Value] {
        self.json["phases"].as_array().expect("phases is a list")
    }
}

/// A value at a path like `dhr.measured`.
pub fn at<'a>(value: &'a Value, path: &str) -> &'a Value {
    path.split('.').fold(value, |value, key| &value[key])
}
