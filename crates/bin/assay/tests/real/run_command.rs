//! Runs the binary and reads what it says.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use assay_http::date::{DATE_BYTES, write_date};
use assay_measurement::measured::Series;
use assay_measurement::xact::XactRow;
use assay_record::dir::RunDir;
use assay_record::run::RunInfo;
use assay_record::xact_log::XactLog;
use serde_json::Value;

/// A directory below `tests/real/workloads`.
pub fn workload(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real/workloads").join(name)
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
    directory: tempfile::TempDir,
}

/// A run that goes on.
pub struct Going {
    child: Child,
    directory: tempfile::TempDir,
}

/// Runs `assay run … --json` in a fresh run directory.
///
/// # Panics
/// When the output is not one JSON document.
pub fn run(args: &[&str]) -> Ran {
    start(Command::new(env!("CARGO_BIN_EXE_assay")), args).wait()
}

/// Starts `PROGRAM run … --json` in a fresh run directory.
pub fn start(mut program: Command, args: &[&str]) -> Going {
    let directory = tempfile::tempdir().expect("the temp directory is writable");
    let run_dir = directory.path().join("run");
    program.args(["run", "--json", "--no-live", "--run-dir", run_dir.to_str().expect("UTF-8")]).args(args);
    program.stdout(Stdio::piped()).stderr(Stdio::piped());
    Going { child: program.spawn().expect("the program starts"), directory }
}

impl Going {
    /// The head of the record as it is now, once the run's clock has come this far into a phase.
    ///
    /// # Panics
    /// When the run does not come that far within a minute.
    pub fn wait_for(&mut self, phase: usize, into_ms: u64) -> RunInfo {
        let patience = Instant::now() + Duration::from_secs(60);
        loop {
            let info = RunDir::open(&self.directory.path().join("run")).and_then(|dir| dir.read_info());
            let began = info.ok().filter(|info| {
                let start_ms = info.phases.get(phase).and_then(|phase| phase.start_ms);
                start_ms.is_some_and(|start_ms| run_clock_ms(info) >= start_ms + into_ms)
            });
            if let Some(info) = began {
                return info;
            }
            let ended = self.child.try_wait().expect("a child can be asked");
            assert!(
                ended.is_none() && Instant::now() < patience,
                "the run does not come to its phase: {ended:?}"
            );
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Kills it, and only it, as if the machine had.
    pub fn kill(mut self) {
        self.child.kill().and_then(|()| self.child.wait()).expect("a child can be killed");
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// When the output is not one JSON document.
    pub fn wait(self) -> Ran {
        let output = self.child.wait_with_output().expect("a child can be waited for");
        let stderr = String::from_utf8_lossy(&output.stderr);
        let json = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}; exit {:?}; stderr:\n{stderr}", output.status.code()));
        Ran { code: output.status.code().unwrap_or(-1), json, directory: self.directory }
    }
}

/// Milliseconds since the start of a run.
pub fn run_clock_ms(info: &RunInfo) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    u64::try_from(now.as_millis()).expect("fits").saturating_sub(info.started_unix_ms)
}

impl Ran {
    /// The head of the record.
    pub fn info(&self) -> RunInfo {
        let dir = RunDir::open(&self.directory.path().join("run"));
        dir.and_then(|dir| dir.read_info()).expect("a run leaves a record")
    }

    /// Everything that was measured.
    pub fn series(&self) -> Series {
        let dir = RunDir::open(&self.directory.path().join("run"));
        dir.and_then(|dir| dir.read_series()).expect("a run leaves a record")
    }

    /// What `assay logs` says of it, with `args`, and its exit code; nothing where it refuses.
    pub fn logs(&self, args: &[&str]) -> (i32, Value) {
        let mut program = Command::new(env!("CARGO_BIN_EXE_assay"));
        program.arg("logs").arg(self.directory.path().join("run")).args(args).arg("--json");
        let output = program.output().expect("the binary runs");
        let said = serde_json::from_slice(&output.stdout).unwrap_or_default();
        (output.status.code().unwrap_or(-1), said)
    }

    /// A number at a path like `total.dhr.measured`; none where the document says null.
    pub fn number(&self, path: &str) -> Option<f64> {
        at(&self.json, path).as_f64()
    }

    /// The log of every xact, of a run with `--xact-log`.
    pub fn xacts(&self) -> Vec<XactRow> {
        XactLog::read(&self.directory.path().join("run/xacts.parquet")).expect("a log that can be read")
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

/// A `Date` that is the same in all responses of this process, so that they can be held against each other.
pub fn one_date() -> &'static str {
    static DATE: OnceLock<String> = OnceLock::new();
    DATE.get_or_init(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
        let mut date = [0; DATE_BYTES];
        write_date(now.as_secs(), &mut date);
        String::from_utf8_lossy(&date).into_owned()
    })
}
