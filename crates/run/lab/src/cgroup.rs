//! Limits of the processes of a proxy: processor time, memory (page cache included) and processors, held by the kernel's
//! control groups, of version 1 or 2, whichever this machine has.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use assay_host::owner::{Owner, PREFIX};
use assay_record::run::LimitsInfo;

use crate::error::LabError;
use crate::placement;

/// The kernel hands out processor time in slices of this length: short, so that a proxy with half a processor is a slow
/// proxy and not one that stops for 50 ms.
const PERIOD_US: f64 = 10_000.0;
/// The least that the kernel gives in a period.
const LEAST_QUOTA_US: f64 = 1_000.0;
/// Number of attempts to remove a group, and the time between them: its processes take a moment to be gone.
const REMOVALS: u32 = 100;
const BETWEEN_REMOVALS: Duration = Duration::from_millis(20);

/// Limits of the proxy's processes together.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Limits {
    /// Processor time, in processors: 0.5 is half of one; none: all there is.
    pub cpus: Option<f64>,
    /// Memory with page cache; none: all there is.
    pub memory_bytes: Option<u64>,
}

impl Limits {
    /// No proxy starts in less memory.
    pub const LEAST_MEMORY_BYTES: u64 = 16 << 20;

    /// True when nothing is limited.
    pub fn is_none(&self) -> bool {
        self.cpus.is_none() && self.memory_bytes.is_none()
    }
}

/// Place of a controller.
#[derive(Debug, Clone, PartialEq, Eq)]
enum CgroupHierarchy {
    /// A hierarchy of its own, where our groups go below this one.
    V1(PathBuf),
    /// The only hierarchy: where it is mounted, and the group that we are in.
    V2 { mount: PathBuf, own: PathBuf },
}

/// A control group of a run, gone when dropped.
#[derive(Debug)]
pub struct ControlGroup {
    /// Directories: one for each controller in version 1.
    dirs: Vec<PathBuf>,
    info: LimitsInfo,
}

static NUMBER: AtomicU32 = AtomicU32::new(1);

impl ControlGroup {
    /// Makes one, in which nothing runs yet; `cpus` are the processors it is confined to (empty: any).
    pub fn make(limits: &Limits, cpus: &[u32]) -> Result<Self, LabError> {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        Self::make_in(&mounts, &own, limits, cpus)
    }

    fn make_in(mounts: &str, own: &str, limits: &Limits, cpus: &[u32]) -> Result<Self, LabError> {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("{PREFIX}{}-{number}", Owner::current().mark());
        let mut wanted = Vec::new();
        wanted.extend(limits.cpus.map(|_| "cpu"));
        wanted.extend(limits.memory_bytes.map(|_| "memory"));
        wanted.extend((!cpus.is_empty()).then_some("cpuset"));
        let mut info = LimitsInfo {
            cpu_quota: limits.cpus,
            memory_bytes: limits.memory_bytes,
            cpus: cpus.to_vec(),
            ..LimitsInfo::default()
        };
        let mut places: Vec<(PathBuf, bool)> = Vec::new();
        for controller in &wanted {
            let found = hierarchy(mounts, own, controller).ok_or_else(|| missing(controller))?;
            let second = matches!(found, CgroupHierarchy::V2 { .. });
            info.how = format!("control groups, version {}", if second { 2 } else { 1 });
            let parent = match found {
                CgroupHierarchy::V1(parent) => parent,
                CgroupHierarchy::V2 { mount, own } => parent_of_two(&mount, &own, &wanted)?,
            };
            let dir = parent.join(&name);
            if !places.iter().any(|(place, _)| *place == dir) {
                places.push((dir, second));
            }
        }
        let mut group = Self { dirs: Vec::new(), info };
        for (dir, _) in &places {
            fs::create_dir(dir).map_err(|e| cannot("make", dir, &e))?;
            // From here on it goes when this is dropped.
            group.dirs.push(dir.clone());
        }
        for (dir, second) in &places {
            for (file, value) in values(dir, *second, limits, cpus) {
                let path = dir.join(file);
                let optional = file.contains("swap") || file.contains("memsw");
                match fs::write(&path, &value) {
                    Err(e) if !optional => return Err(cannot(&format!("write {value} to"), &path, &e)),
                    _ => {}
                }
            }
        }
        Ok(group)
    }

    /// The files through which a process joins, by writing `0` to each.
    pub fn procs_files(&self) -> Vec<PathBuf> {
        self.dirs.iter().map(|dir| dir.join("cgroup.procs")).collect()
    }

    /// The limits and, as far as the kernel counts it, what became of them.
    pub fn info(&self) -> LimitsInfo {
        let read = |file: &str| self.dirs.iter().find_map(|dir| fs::read_to_string(dir.join(file)).ok());
        let number = |file: &str| read(file)?.trim().parse::<u64>().ok();
        let counted = |file: &str, name: &str| count(&read(file)?, name);
        let throttled = counted("cpu.stat", "throttled_usec")
            .or_else(|| counted("cpu.stat", "throttled_time").map(|time_ns| time_ns / 1000));
        let kills =
            counted("memory.events", "oom_kill").or_else(|| counted("memory.oom_control", "oom_kill"));
        LimitsInfo {
            throttled_us: throttled.filter(|_| self.info.cpu_quota.is_some()),
            memory_peak_bytes: number("memory.peak").or_else(|| number("memory.max_usage_in_bytes")),
            killed_for_memory: kills,
            ..self.info.clone()
        }
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        for dir in &self.dirs {
            // What cannot be removed now carries our mark, and goes at the next start.
            let _ = remove_dir(dir);
        }
    }
}

/// Removes a group's directory once its processes are gone.
pub fn remove_dir(dir: &Path) -> io::Result<()> {
    for _ in 1..REMOVALS {
        match fs::remove_dir(dir) {
            Err(e) if e.raw_os_error() == Some(libc::EBUSY) => std::thread::sleep(BETWEEN_REMOVALS),
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => return other,
        }
    }
    fs::remove_dir(dir)
}

/// Directories in which groups of ours may lie.
pub fn parents() -> Vec<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mut found = Vec::new();
    for controller in ["cpu", "memory", "cpuset"] {
        match hierarchy(&mounts, &own, controller) {
            Some(CgroupHierarchy::V1(parent)) => found.push(parent),
            Some(CgroupHierarchy::V2 { mount, own }) => {
                found.extend(
                    own.ancestors().take_while(|above| above.starts_with(&mount)).map(Path::to_owned),
                );
            }
            None => {}
        }
    }
    // An owner that was in another group made its own groups elsewhere; those at the top can be seen by all.
    found.extend(mount_points(&mounts).map(|(mount, _, _)| mount));
    found.sort();
    found.dedup();
    found
}

/// Mount point, version 2 or not, and options of every hierarchy.
fn mount_points(mounts: &str) -> impl Iterator<Item = (PathBuf, bool, &str)> {
    mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        let (mount, kind, options) = (words.next()?, words.next()?, words.next()?);
        matches!(kind, "cgroup" | "cgroup2").then(|| (PathBuf::from(mount), kind == "cgroup2", options))
    })
}

/// Place of a controller; none where the kernel (or the container) does not have it.
fn hierarchy(mounts: &str, own: &str, controller: &str) -> Option<CgroupHierarchy> {
    let has = |list: &str| list.split(',').any(|word| word == controller);
    let own_path = |is_it: &dyn Fn(&str, &str) -> bool| {
        own.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':');
            let (number, list, path) = (parts.next()?, parts.next()?, parts.next()?);
            is_it(number, list).then(|| path.trim_start_matches('/').to_owned())
        })
    };
    // In a container, the path may name a directory that cannot be seen from here.
    let below = |mount: &Path, path: Option<String>| {
        let own = mount.join(path.unwrap_or_default());
        if own.join("cgroup.procs").exists() { own } else { mount.to_owned() }
    };
    if let Some((mount, _, _)) = mount_points(mounts).find(|(_, second, options)| !second && has(options)) {
        return Some(CgroupHierarchy::V1(below(&mount, own_path(&|_, list| has(list)))));
    }
    let with = |mount: &Path| {
        let list = fs::read_to_string(mount.join("cgroup.controllers")).unwrap_or_default();
        list.split_whitespace().any(|word| word == controller)
    };
    let (mount, _, _) = mount_points(mounts).find(|(mount, second, _)| *second && with(mount))?;
    let own = below(&mount, own_path(&|number, list| number == "0" && list.is_empty()));
    Some(CgroupHierarchy::V2 { mount, own })
}

/// The nearest group above ours (which has processes, so that it cannot hand controllers on) that hands the controllers on,
/// or lets us make it do so.
fn parent_of_two(mount: &Path, own: &Path, wanted: &[&str]) -> Result<PathBuf, LabError> {
    let mut last = io::Error::other("there is no group above ours");
    let above = if own == mount { Some(own) } else { own.parent() };
    let candidates = above.into_iter().flat_map(Path::ancestors);
    for parent in candidates.take_while(|above| above.starts_with(mount)) {
        let file = parent.join("cgroup.subtree_control");
        let handed = fs::read_to_string(&file).unwrap_or_default();
        let missing: Vec<String> = wanted
            .iter()
            .filter(|controller| !handed.split_whitespace().any(|word| word == **controller))
            .map(|controller| format!("+{controller}"))
            .collect();
        if missing.is_empty() {
            return Ok(parent.to_owned());
        }
        match fs::write(&file, missing.join(" ")) {
            Ok(()) => return Ok(parent.to_owned()),
            Err(e) => last = e,
        }
    }
    Err(cannot("hand controllers on in", mount, &last))
}

/// Files of a group's directory, with the value for each. Those with `swap` or `memsw` only where the kernel has them.
fn values(dir: &Path, second: bool, limits: &Limits, cpus: &[u32]) -> Vec<(&'static str, String)> {
    let here = |file: &str| dir.join(file).exists();
    let mut values = Vec::new();
    if let Some(quota) = limits.cpus {
        let quota_us = (quota * PERIOD_US).max(LEAST_QUOTA_US).round();
        if second {
            values.push(("cpu.max", format!("{quota_us} {PERIOD_US}")));
        } else if here("cpu.cfs_quota_us") {
            values.push(("cpu.cfs_period_us", PERIOD_US.to_string()));
            values.push(("cpu.cfs_quota_us", quota_us.to_string()));
        }
    }
    if let Some(bytes) = limits.memory_bytes {
        if second {
            values.push(("memory.max", bytes.to_string()));
            values.push(("memory.swap.max", "0".into()));
        } else if here("memory.limit_in_bytes") {
            values.push(("memory.limit_in_bytes", bytes.to_string()));
            values.push(("memory.memsw.limit_in_bytes", bytes.to_string()));
        }
    }
    if !cpus.is_empty() && (second || here("cpuset.cpus")) {
        if !second {
            let above = dir.parent().map(|parent| parent.join("cpuset.mems"));
            let nodes = above.and_then(|path| fs::read_to_string(path).ok()).unwrap_or_default();
            values.push(("cpuset.mems", nodes.trim().to_owned()));
        }
        values.push(("cpuset.cpus", placement::format_cpus(cpus)));
    }
    values
}

/// A number behind a name, a line each.
fn count(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
    line.trim().parse().ok()
}

fn missing(controller: &str) -> LabError {
    LabError::plan(format!(
        "this machine has no control groups for {controller}, so the proxy's {} cannot be limited; leave the limit out, \
         or run where they are mounted",
        if controller == "memory" { "memory" } else { "processor time" }
    ))
}

fn cannot(what: &str, path: &Path, error: &dyn std::fmt::Display) -> LabError {
    LabError::plan(format!(
        "cannot limit the proxy: cannot {what} {}: {error}; limits need the right to make control groups (as root, or \
         in a group that was handed to you: systemd-run --user --scope -p Delegate=yes); leave the limits out otherwise",
        path.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn a_controller_is_found_in_its_own_hierarchy_below_our_own_group() {
        let top = tempfile::tempdir().unwrap();
        let memory = top.path().join("memory");
        touch(&memory.join("inner/cgroup.procs"), "");
        let mounts = format!("cgroup {} cgroup rw,memory 0 0\ncgroup2 /x cgroup2 rw 0 0\n", memory.display());
        let found = hierarchy(&mounts, "4:memory:/inner\n0::/\n", "memory");
        assert_eq!(found, Some(CgroupHierarchy::V1(memory.join("inner"))));
        let found = hierarchy(&mounts, "4:memory:/cannot/be/seen\n", "memory");
        assert_eq!(found, Some(CgroupHierarchy::V1(memory)));
        assert_eq!(hierarchy(&mounts, "", "cpu"), None);
    }

    #[test]
    fn in_version_2_the_nearest_group_above_ours_that_hands_controllers_on_is_taken() {
        let top = tempfile::tempdir().unwrap();
        let mount = top.path().to_owned();
        touch(&mount.join("cgroup.controllers"), "cpuset cpu io memory pids\n");
        touch(&mount.join("cgroup.subtree_control"), "cpu memory pids\n");
        touch(&mount.join("user/own/cgroup.procs"), "");
        touch(&mount.join("user/cgroup.subtree_control"), "memory cpu\n");
        let mounts = format!("none {} cgroup2 rw 0 0\n", mount.display());
        let found = hierarchy(&mounts, "0::/user/own\n", "cpu").unwrap();
        assert_eq!(found, CgroupHierarchy::V2 { mount: mount.clone(), own: mount.join("user/own") });
        assert_eq!(parent_of_two(&mount, &mount.join("user/own"), &["cpu"]).unwrap(), mount.join("user"));
        let limits = Limits { cpus: Some(0.25), memory_bytes: Some(64 << 20) };
        let group = ControlGroup::make_in(&mounts, "0::/user/own\n", &limits, &[1, 2]).unwrap();
        let dir = group.dirs[0].clone();
        assert_eq!((group.dirs.len(), dir.parent()), (1, Some(mount.join("user").as_path())));
        let read = |file: &str| fs::read_to_string(dir.join(file)).unwrap();
        assert_eq!((read("cpu.max"), read("memory.max")), ("2500 10000".into(), "67108864".into()));
        assert_eq!(read("cpuset.cpus"), "1-2");
        touch(&dir.join("cpu.stat"), "nr_throttled 3\nthrottled_usec 1200\n");
        touch(&dir.join("memory.events"), "oom 1\noom_kill 2\n");
        let info = group.info();
        assert_eq!((info.throttled_us, info.killed_for_memory), (Some(1200), Some(2)));
        assert_eq!(info.how, "control groups, version 2");
    }

    #[test]
    fn without_control_groups_the_limit_is_refused_in_words() {
        let limits = Limits { memory_bytes: Some(64 << 20), ..Limits::default() };
        let error = ControlGroup::make_in("proc /proc proc rw 0 0\n", "0::/\n", &limits, &[]).unwrap_err();
        assert!(
            error.before_start() && error.to_string().contains("no control groups for memory"),
            "{error}"
        );
    }

    /// Needs control groups, and the right to make one.
    mod real_tests {
        use super::*;
        use crate::process::{Launch, Process};

        #[test]
        fn a_group_of_this_machine_holds_its_limits_and_is_gone_afterwards() {
            let limits = Limits { cpus: Some(0.5), memory_bytes: Some(64 << 20) };
            let group = match ControlGroup::make(&limits, &[]) {
                Ok(group) => group,
                // Not every machine, and not every user, may make one; what is said then is tested above.
                Err(error) => return assay_testbed::skip(&error.to_string()),
            };
            let info = group.info();
            assert_eq!((info.cpu_quota, info.memory_bytes), (Some(0.5), Some(64 << 20)));
            let dirs = group.dirs.clone();
            assert!(!dirs.is_empty() && dirs.iter().all(|dir| dir.is_dir()));
            let temp = tempfile::tempdir().unwrap();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let launch = Launch {
                    program: "/bin/cat".into(),
                    arguments: vec!["/proc/self/cgroup".into()],
                    environment: Default::default(),
                    directory: temp.path(),
                    cpus: &[],
                    piped: false,
                    output: &temp.path().join("out"),
                    group: None,
                    procs_files: &group.procs_files(),
                    namespace: None,
                    inherit: Vec::new(),
                };
                Process::start(launch).unwrap().wait().await.unwrap();
            });
            let said = fs::read_to_string(temp.path().join("out")).unwrap();
            assert!(said.contains(&Owner::current().mark()), "it did not run in the group: {said}");
            drop(group);
            assert!(dirs.iter().all(|dir| !dir.exists()));
        }
    }
}
