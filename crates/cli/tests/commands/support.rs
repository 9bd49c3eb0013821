//! What the tests share: the tree, the binary, and directories that go away.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Nothing here takes longer, unless it hangs.
const PATIENCE: Duration = Duration::from_secs(300);

/// The top of the tree.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the workspace").to_owned()
}

/// A text file of the tree.
pub fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()))
}

/// The binary under test, in an empty directory of its own.
pub struct Assay {
    /// Where it is run.
    pub directory: tempfile::TempDir,
}

/// What the binary said and how it ended.
#[derive(Debug)]
pub struct Said {
    /// Exit code; none: ended by a signal.
    pub code: Option<i32>,
    /// Standard error. It is ahead of the output, which may be a long document, where a test that fails shows both.
    pub stderr: String,
    /// Standard output.
    pub stdout: String,
}

impl Assay {
    /// In a fresh directory.
    pub fn new() -> Self {
        Self { directory: tempfile::tempdir().expect("a temporary directory") }
    }

    /// Writes a file into the directory; gives its name.
    pub fn file<'a>(&self, name: &'a str, text: &str) -> &'a str {
        std::fs::write(self.directory.path().join(name), text).expect("a writable directory");
        name
    }

    /// The path of something in the directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A command, ready to be started.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_assay"));
        command.args(arguments).current_dir(self.directory.path()).stdin(Stdio::null());
        command
    }

    /// Runs it to its end.
    pub fn run(&self, arguments: &[&str]) -> Said {
        self.command(arguments).output().expect("the binary starts").into()
    }
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Said {
    /// Checks the exit code, and shows everything when it is another.
    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    /// Nothing was wrong. On a busy machine (96), a headline number may not be known.
    pub fn went_well(&self) -> bool {
        matches!(self.code, Some(0 | 96))
    }

    /// Checks that standard error has these words.
    #[track_caller]
    pub fn complains(self, words: &str) -> Self {
        assert!(self.stderr.contains(words), "no `{words}` in stderr:\n{}", self.stderr);
        self
    }
}

/// Reads lines of standard error until one has `words`.
pub fn wait_for(lines: &mut impl Iterator<Item = std::io::Result<String>>, words: &str) {
    wait_until(lines, &format!("`{words}`"), |line| line.contains(words).then_some(()));
}

/// Reads lines of standard error until a run has come to its `second`; gives that of the line, which may be a later one: on a busy
/// machine, not every second has a line.
pub fn wait_for_second(lines: &mut impl Iterator<Item = std::io::Result<String>>, second: u32) -> u32 {
    wait_until(lines, &format!("second {second}"), |line| {
        let (minutes, seconds) = line.split_whitespace().next()?.split_once(':')?;
        let at = minutes.parse::<u32>().ok()? * 60 + seconds.parse::<u32>().ok()?;
        (at >= second).then_some(at)
    })
}

fn wait_until<T>(
    lines: &mut impl Iterator<Item = std::io::Result<String>>,
    what: &str,
    find: impl Fn(&str) -> Option<T>,
) -> T {
    let mut seen = Vec::new();
    for line in lines {
        let line = line.expect("text");
        if let Some(found) = find(&line) {
            return found;
        }
        seen.push(line);
    }
    panic!("no {what} in {seen:#?}");
}

/// The figures of a run in which this share of what came due was sent and completed: a machine that is very busy keeps requests from
/// being sent, and the run is repeated.
pub fn all_sent(share: f64, mut run: impl FnMut() -> serde_json::Value) -> serde_json::Value {
    let is_sent = |total: &serde_json::Value| {
        let counted =
            |field: &str| total[field].as_f64().unwrap_or_else(|| panic!("no {field} in {total:#}"));
        counted("completed") >= share * counted("due")
    };
    std::iter::repeat_with(&mut run).take(8).find(is_sent).expect("requests are sent in one of eight runs")
}

/// Processes whose command line names `directory`.
pub fn processes_of(directory: &Path) -> Vec<String> {
    let name = directory.display().to_string();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").expect("Linux").flatten() {
        if let Ok(command) = std::fs::read(entry.path().join("cmdline")) {
            let command = String::from_utf8_lossy(&command).replace('\0', " ");
            if command.contains(&name) {
                found.push(command);
            }
        }
    }
    found
}

/// Waits until no process names `directory`.
pub fn assert_nothing_left(directory: &Path) {
    let started = Instant::now();
    loop {
        let left = processes_of(directory);
        if left.is_empty() {
            return;
        }
        assert!(started.elapsed() < PATIENCE, "still running: {left:#?}");
        std::thread::yield_now();
    }
}

/// A program of this machine. Without it a test says that it is skipped, except where `ASSAY_REQUIRE_REAL=1` demands the real
/// thing: there it fails.
pub fn program(names: &[&str], package: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .flat_map(|directory| names.iter().map(move |name| directory.join(name)))
        .find(|candidate| candidate.is_file());
    if found.is_none() {
        let required = std::env::var("ASSAY_REQUIRE_REAL").as_deref() == Ok("1");
        assert!(!required, "no {package}, and ASSAY_REQUIRE_REAL=1 wants one: apt-get install {package}");
        eprintln!("skipped: no {package} in PATH (apt-get install {package})");
    }
    found
}

/// The interpreter that `scripts/test-setup.sh` makes; without one the test says that this part is skipped.
pub fn python() -> Option<PathBuf> {
    let named = std::env::var_os("ASSAY_PYTHON").map(PathBuf::from);
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
    let found = named.or_else(|| Some(cache?.join("assay/python/bin/python"))).filter(|path| path.is_file());
    if found.is_none() {
        let required = std::env::var("ASSAY_REQUIRE_REAL").as_deref() == Ok("1");
        assert!(!required, "ASSAY_REQUIRE_REAL=1 wants a Python with pandas: scripts/test-setup.sh");
        eprintln!("skipped: no Python with pandas and DuckDB (scripts/test-setup.sh makes one)");
    }
    found
}

/// Sends a signal to a child.
pub fn send(child: &Child, signal: i32) {
    // SAFETY: a plain system call; the process is our child and has not been waited for.
    let sent = unsafe { libc::kill(child.id() as i32, signal) };
    assert_eq!(sent, 0, "cannot send a signal");
}

/// Waits for the process whose command line ends in this file below the directory.
pub fn process_of(directory: &Path, file: &str) -> i32 {
    let begin = Instant::now();
    loop {
        for entry in std::fs::read_dir("/proc").expect("Linux").flatten() {
            let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let command = String::from_utf8_lossy(&command).replace('\0', " ");
            let is_it =
                command.contains(&directory.display().to_string()) && command.trim_end().ends_with(file);
            if let (true, Ok(pid)) = (is_it, entry.file_name().to_string_lossy().parse()) {
                return pid;
            }
        }
        assert!(begin.elapsed() < PATIENCE, "no process of {file}");
        std::thread::yield_now();
    }
}

/// Stops a role: nothing but its end reaches it until it is thawed.
pub fn freeze(pid: i32) {
    signal(pid, libc::SIGSTOP);
}

/// Lets a stopped role go on.
pub fn thaw(pid: i32) {
    signal(pid, libc::SIGCONT);
}

fn signal(pid: i32, signal: i32) {
    // SAFETY: a plain system call; the process is one that our child has started and holds.
    assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
}
