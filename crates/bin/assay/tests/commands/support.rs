//! What the tests share, those of `tests/real` too: the tree, the binary, and directories that go away.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// The top of the tree.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3).expect("the workspace").to_owned()
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

/// What `find` finds in the first line that it finds something in.
pub fn wait_until<T>(
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

/// A program of this machine. None: the test is skipped.
pub fn program(names: &[&str], package: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .flat_map(|directory| names.iter().map(move |name| directory.join(name)))
        .find(|candidate| candidate.is_file());
    if found.is_none() {
        assay_testbed::skip(&format!("no {package} in PATH (apt-get install {package})"));
    }
    found
}

/// Sends a signal to a child.
pub fn send(child: &Child, signal: i32) {
    // SAFETY: a plain system call; the process is our child and has not been waited for.
    let sent = unsafe { libc::kill(child.id() as i32, signal) };
    assert_eq!(sent, 0, "cannot send a signal");
}

/// Runs a program of the tree, or of this machine, in a directory.
pub fn script(path: &Path, arguments: &[&str], within: &Path) -> Said {
    let mut command = Command::new(path);
    command.args(arguments).current_dir(within).stdin(Stdio::null());
    Said::from(command.output().unwrap_or_else(|error| panic!("cannot start {}: {error}", path.display())))
}

/// Processors that this test may use.
pub fn processors() -> Vec<String> {
    let text = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = text.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).expect("a list");
    let mut all = Vec::new();
    for range in line.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let number = |text: &str| text.parse::<u32>().expect("a number");
        all.extend((number(first)..=number(last)).map(|cpu| cpu.to_string()));
    }
    all
}
