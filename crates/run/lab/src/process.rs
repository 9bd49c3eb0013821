//! Programs, started and stopped so that none is ever left behind.
//!
//! Every program is a direct child in the foreground, in a process group of its own (a Ctrl-C in the terminal
//! does not reach it; the lab decides), pinned before it runs, with its output kept in files. A [`Process`]
//! that is dropped kills its whole group. Should the lab itself be killed, roles end with it (the kernel
//! signals them, and their input ends); a real proxy, which may shed that signal by changing its user, has a
//! [`Watchdog`].

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{BorrowedFd, RawFd};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use assay_host::link::Namespace;
use rustix::process::{Pid, Signal};
use rustix::thread::CpuSet;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// Lines of a program's output that are shown when it fails.
const LAST_LINES: usize = 20;
/// Bytes at the end of an output file that are looked at for them.
const LAST_BYTES: u64 = 16 * 1024;
/// Time that a killed program may take to end.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);

/// A program to start.
#[derive(Debug)]
pub struct Launch<'a> {
    /// Program, as found in `PATH` or as a path.
    pub program: OsString,
    pub arguments: Vec<OsString>,
    /// Environment beside the lab's own.
    pub environment: BTreeMap<String, String>,
    pub directory: &'a Path,
    /// Processors it may run on; empty: any.
    pub cpus: &'a [u32],
    /// Talks over pipes (roles), or is left alone (proxies).
    pub piped: bool,
    /// File for its standard error, and its standard output when it does not talk.
    pub output: &'a Path,
    /// Process group to join; none: one of its own.
    pub group: Option<u32>,
    /// `cgroup.procs` of the control groups it is to run in.
    pub procs_files: &'a [PathBuf],
    /// Network it lives in; none: the lab's own.
    pub namespace: Option<Namespace>,
    /// Descriptors of the lab's that it keeps under their numbers.
    pub inherit: Vec<RawFd>,
}

#[derive(Debug)]
pub struct Process {
    /// Name, for messages.
    pub name: String,
    /// Id, which is its group's too unless it joined one.
    pub pid: u32,
    leads_group: bool,
    child: Child,
    output: PathBuf,
}

/// End of a program that was told to stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stopped {
    /// True: it did not end in time and was killed.
    pub killed: bool,
    /// Duration.
    pub took: Duration,
}

impl Process {
    /// Starts a program. Must be called on a thread that lives as long as the program may: the kernel takes
    /// the end of that thread for the end of the parent.
    pub fn start(launch: Launch<'_>) -> io::Result<Self> {
        let name = Path::new(&launch.program)
            .file_name()
            .map_or_else(|| "program".to_owned(), |name| name.to_string_lossy().into_owned());
        let output = File::options().create(true).append(true).open(launch.output)?;
        let mut command = Command::new(&launch.program);
        command
            .args(&launch.arguments)
            .envs(&launch.environment)
            .current_dir(launch.directory)
            .stdin(if launch.piped { Stdio::piped() } else { Stdio::null() })
            .stdout(if launch.piped { Stdio::piped() } else { Stdio::from(output.try_clone()?) })
            .stderr(Stdio::from(output))
            .process_group(launch.group.map_or(Ok(0), i32::try_from).map_err(io::Error::other)?)
            .kill_on_drop(true);
        let procs_files: Vec<File> = launch
            .procs_files
            .iter()
            .map(|file| File::options().write(true).open(file))
            .collect::<io::Result<_>>()?;
        let setting = ChildSetup { procs_files, namespace: launch.namespace, inherit: launch.inherit };
        before_exec(&mut command, launch.cpus, setting);
        let child = command.spawn()?;
        let pid = child.id().ok_or_else(|| io::Error::other("the program has no process id"))?;
        Ok(Self { name, pid, leads_group: launch.group.is_none(), child, output: launch.output.to_owned() })
    }

    /// The pipes of a program that talks; none the second time.
    pub fn pipes(&mut self) -> Option<(ChildStdin, ChildStdout)> {
        Some((self.child.stdin.take()?, self.child.stdout.take()?))
    }

    /// Status with which it ended; none while it runs. When this is first seen, what it left behind in its group is killed: workers of a proxy outlive
    /// a main process that was killed. (Later, the group's id may be that of others.)
    pub fn ended(&mut self) -> Option<ExitStatus> {
        let is_known = self.child.id().is_none();
        let status = self.child.try_wait().ok().flatten();
        if status.is_some() && !is_known && self.leads_group {
            self.kill_group();
        }
        status
    }

    /// Waits until it ends by itself.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Tells it to end, waits, and kills what is left of its group.
    pub async fn stop(&mut self, signal: Signal, limit: Duration) -> Stopped {
        let began = Instant::now();
        if self.ended().is_none() {
            self.signal(signal);
        }
        let mut killed = tokio::time::timeout(limit, self.child.wait()).await.is_err();
        // What it left behind in its group goes with it; a program that ended leaves nothing to be counted as
        // killed.
        self.kill_group();
        if killed {
            killed = tokio::time::timeout(KILL_TIMEOUT, self.child.wait()).await.is_ok() || killed;
        }
        Stopped { killed, took: began.elapsed() }
    }

    /// The last lines it wrote.
    pub fn last_lines(&self) -> String {
        last_lines(&[&self.output])
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = pid_of(self.pid) {
            // An error means that it is gone already.
            let _ = rustix::process::kill_process(pid, signal);
        }
    }

    fn kill_group(&mut self) {
        let Some(pid) = pid_of(self.pid) else { return };
        // An error means that nothing is left of it.
        if self.leads_group {
            let _ = rustix::process::kill_process_group(pid, Signal::KILL);
        } else if self.ended().is_none() {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // `child.id()` is none once it has been waited for: its id could be another's by now.
        if self.child.id().is_some() {
            self.kill_group();
        }
    }
}

/// Watches over a program while the lab lives: should the lab be killed, it stops the program's group and
/// removes its directory. It waits for the end of its input, which no one but the lab holds.
#[derive(Debug)]
pub struct Watchdog {
    process: Process,
    input: Option<ChildStdin>,
}

/// `$1` signal, `$2` directory, `$3` the instance whose shared memory goes too. Told `group N`, it stops that group before the directory goes; told `done`, it
/// does nothing. What ends late may still be writing into the directory, so that takes more than one attempt.
const WATCHDOG_SCRIPT: &str = r#"trap '' INT TERM HUP QUIT
group=
while read -r word number; do
    case "$word" in
        group) group=$number ;;
        done) exit 0 ;;
    esac
done
if [ -n "$group" ]; then
    kill -s "$1" -- "-$group"
    for pause in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        kill -0 -- "-$group" || break
        sleep 0.2
    done
    kill -s KILL -- "-$group"
fi
for pause in 1 2 3 4 5 6 7 8 9 10; do
    rm -rf -- "$2" && break
    sleep 0.2
done
rm -f -- "/dev/shm/$3"-*.shm
"#;

impl Watchdog {
    /// Begins to watch over a directory.
    pub fn start(signal: &str, directory: &Path, instance: &str, output: &Path) -> io::Result<Self> {
        let words = ["-c", WATCHDOG_SCRIPT, "assay-keeper", signal].map(OsString::from);
        let mut arguments = words.to_vec();
        arguments.extend([directory.into(), instance.into()]);
        let launch = Launch {
            program: "/bin/sh".into(),
            arguments,
            environment: BTreeMap::new(),
            directory: Path::new("/"),
            cpus: &[],
            piped: true,
            output,
            group: None,
            procs_files: &[],
            namespace: None,
            inherit: Vec::new(),
        };
        let mut process = Process::start_surviving(launch)?;
        let input = process.pipes().map(|(input, _)| input);
        Ok(Self { process, input })
    }

    /// From now on watches over the group of `process` too.
    pub async fn watch(&mut self, process: &Process) -> io::Result<()> {
        use tokio::io::AsyncWriteExt;
        match &mut self.input {
            Some(input) => input.write_all(format!("group {}\n", process.pid).as_bytes()).await,
            None => Ok(()),
        }
    }

    /// Everything is stopped: there is nothing to watch over any more.
    pub async fn release(mut self) {
        use tokio::io::AsyncWriteExt;
        if let Some(mut input) = self.input.take() {
            // If it cannot be told, dropping it ends it.
            let _ = input.write_all(b"done\n").await;
            drop(input);
            let _ = tokio::time::timeout(KILL_TIMEOUT, self.process.wait()).await;
        }
    }
}

impl Process {
    /// Starts a program that is not killed with the lab.
    fn start_surviving(launch: Launch<'_>) -> io::Result<Self> {
        let mut command = Command::new(&launch.program);
        let output = File::options().create(true).append(true).open(launch.output)?;
        command
            .args(&launch.arguments)
            .current_dir(launch.directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::from(output))
            .process_group(0)
            .kill_on_drop(true);
        let child = command.spawn()?;
        let pid = child.id().ok_or_else(|| io::Error::other("the program has no process id"))?;
        Ok(Self { name: "keeper".into(), pid, leads_group: true, child, output: launch.output.to_owned() })
    }
}

/// Environment of a child when it becomes the program.
#[derive(Default)]
struct ChildSetup {
    /// `cgroup.procs` of its control groups, open for writing.
    procs_files: Vec<File>,
    namespace: Option<Namespace>,
    /// Descriptors that it keeps.
    inherit: Vec<RawFd>,
}

/// Prepares a child before it becomes the program: it goes with the lab, enters its control groups and its network, and is
/// pinned.
fn before_exec(command: &mut Command, cpus: &[u32], setting: ChildSetup) {
    let cpus = cpu_set(cpus);
    let ChildSetup { procs_files, namespace, inherit } = setting;
    let prepare = move || {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        // Before anything is allocated: all of it counts.
        for file in &procs_files {
            rustix::io::write(file, b"0")?;
        }
        if let Some(cpus) = &cpus {
            rustix::thread::sched_setaffinity(None, cpus)?;
        }
        if let Some(namespace) = &namespace {
            namespace.enter()?;
        }
        for descriptor in &inherit {
            // SAFETY: whoever named it keeps it open until the program has started.
            let descriptor = unsafe { BorrowedFd::borrow_raw(*descriptor) };
            rustix::io::fcntl_setfd(descriptor, rustix::io::FdFlags::empty())?;
        }
        Ok(())
    };
    // SAFETY: between fork and exec only system calls are made, on values made before the fork; nothing is allocated and no
    // lock is taken.
    unsafe { command.pre_exec(prepare) };
}

/// Runs a program to its end and returns its output; for programs that end at once.
pub async fn run_to_end(
    command: &[String],
    directory: &Path,
    cpus: &[u32],
    namespace: Option<&Namespace>,
    limit: Duration,
) -> io::Result<std::process::Output> {
    let (name, arguments) = command.split_first().ok_or_else(|| io::Error::other("no program is named"))?;
    let program =
        find_program(name).ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "not installed"))?;
    let mut command = Command::new(program);
    command.args(arguments).current_dir(directory).stdin(Stdio::null()).process_group(0).kill_on_drop(true);
    before_exec(&mut command, cpus, ChildSetup { namespace: namespace.cloned(), ..ChildSetup::default() });
    tokio::time::timeout(limit, command.output())
        .await
        .map_err(|_| io::Error::new(io::ErrorKind::TimedOut, format!("no response within {limit:?}")))?
}

/// The last lines of some files, in order; empty when there are none.
pub fn last_lines(files: &[&Path]) -> String {
    let mut lines = Vec::new();
    for file in files {
        let tail = tail(file, LAST_BYTES).unwrap_or_default();
        lines.extend(tail.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned));
    }
    let from = lines.len().saturating_sub(LAST_LINES);
    lines.split_off(from).join("\n")
}

/// The end of a file, of so many bytes at most.
pub(crate) fn tail(file: &Path, most_bytes: u64) -> io::Result<String> {
    use std::io::{Read, Seek, SeekFrom};
    let mut file = assay_base::files::open(file)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(most_bytes)))?;
    let mut bytes = Vec::new();
    file.take(most_bytes).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Advice on a program that is not installed.
pub(crate) fn install_advice(package: Option<&str>) -> String {
    package.map_or_else(
        || "install it, or correct the path in the description".to_owned(),
        |package| format!("install it: apt-get install {package}"),
    )
}

/// Path of a program: itself if it is a path, else in `PATH` or where system programs are.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let runs = |path: &Path| {
        use std::os::unix::fs::PermissionsExt;
        path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    if name.contains('/') {
        let path = PathBuf::from(name);
        return runs(&path).then_some(path);
    }
    // Debian keeps proxies in sbin, which is not in every user's PATH.
    let system = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).chain(system).map(|dir| dir.join(name)).find(|path| runs(path))
}

fn pid_of(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

fn cpu_set(cpus: &[u32]) -> Option<CpuSet> {
    if cpus.is_empty() {
        return None;
    }
    let mut set = CpuSet::new();
    for &cpu in cpus {
        let cpu = usize::try_from(cpu).unwrap_or(usize::MAX);
        if cpu < CpuSet::MAX_CPU {
            set.set(cpu);
        }
    }
    Some(set)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_in_path_as_paths_or_not_at_all() {
        assert!(find_program("sh").is_some());
        assert_eq!(find_program("/bin/sh"), Some(PathBuf::from("/bin/sh")));
        assert_eq!(find_program("no-such-program-anywhere"), None);
        assert_eq!(find_program("/etc/passwd"), None);
    }

    #[tokio::test]
    async fn what_a_program_that_ended_left_running_ends_when_that_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let (output, procs_files) = (dir.path().join("out"), Vec::new());
        let mut started = Process::start(Launch {
            program: "/bin/sh".into(),
            arguments: ["-c", "sleep 600 & echo $! >&2; kill -KILL $$"].map(Into::into).to_vec(),
            environment: BTreeMap::new(),
            directory: dir.path(),
            cpus: &[],
            piped: false,
            output: &output,
            group: None,
            procs_files: &procs_files,
            namespace: None,
            inherit: Vec::new(),
        })
        .unwrap();
        while started.ended().is_none() {
            tokio::task::yield_now().await;
        }
        let left: i32 = std::fs::read_to_string(&output).unwrap().trim().parse().unwrap();
        // It is a child of the process that reaps orphans then, or gone altogether.
        let is_over = || {
            let stat = std::fs::read_to_string(format!("/proc/{left}/stat")).unwrap_or_default();
            stat.is_empty() || stat.contains(") Z ")
        };
        while !is_over() {
            tokio::task::yield_now().await;
        }
    }

    #[test]
    fn last_words_are_the_last_lines_that_say_something() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("out");
        let lines: Vec<String> = (0..50).map(|n| format!("line {n}\n\n")).collect();
        std::fs::write(&file, lines.concat()).unwrap();
        let words = last_lines(&[&file, Path::new("/nowhere")]);
        assert_eq!(words.lines().count(), LAST_LINES);
        assert!(words.starts_with("line 30\n") && words.ends_with("line 49"));
    }
}
