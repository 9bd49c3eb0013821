//! Resource usage of the control group of a role.
//!
//! A role has a group of its own if it is in another one than this process. Both versions are supported; in version 1, each
//! controller has a hierarchy of its own.

use std::fs;
use std::path::{Path, PathBuf};

use super::proc_file::{ProcFile, ReadBuffer, read};
use super::processes::ticks_us;

/// Open files of a role's own control group, if it has one.
#[derive(Debug, Default)]
pub struct ControlGroup {
    /// `cpuacct.usage` (version 1) or `cpu.stat` (version 2).
    time: Option<ProcFile>,
    /// `cpuacct.stat` (version 1): user and system time in ticks.
    split: Option<ProcFile>,
    memory: Option<ProcFile>,
    memory_stat: Option<ProcFile>,
}

/// Usage of a group.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GroupUsage {
    /// Processor time since the creation of the group.
    pub cpu: Option<CpuTime>,
    /// Level: memory, with the page cache.
    pub bytes: Option<u64>,
    /// Level: page cache.
    pub cache_bytes: Option<u64>,
}

/// Processor time, in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuTime {
    pub all_us: u64,
    pub user_us: u64,
    pub system_us: u64,
}

impl ControlGroup {
    /// The group of a process, for those controllers for which it differs from that of this process.
    pub fn of_process(pid: u32) -> Self {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let mounts = text("/proc/self/mountinfo");
        let (own, other) = (text("/proc/self/cgroup"), text(&format!("/proc/{pid}/cgroup")));
        let dir = |controller| separate_dir(&mounts, &own, &other, controller);
        let open = |dir: &Option<PathBuf>, name: &str| ProcFile::open(dir.as_ref()?.join(name));
        let (cpu, memory) = (dir("cpuacct"), dir("memory"));
        let time = open(&cpu, "cpuacct.usage").or_else(|| open(&cpu, "cpu.stat"));
        Self {
            time,
            split: open(&cpu, "cpuacct.stat"),
            memory: open(&memory, "memory.usage_in_bytes").or_else(|| open(&memory, "memory.current")),
            memory_stat: open(&memory, "memory.stat"),
        }
    }

    pub fn usage(&self, buffer: &mut ReadBuffer) -> GroupUsage {
        let split = read(self.split.as_ref(), buffer).map(|text| parse_split(&text));
        let cpu = read(self.time.as_ref(), buffer).and_then(|text| parse_time(&text, split));
        let bytes = read(self.memory.as_ref(), buffer).and_then(|text| text.trim().parse().ok());
        let cache_bytes = read(self.memory_stat.as_ref(), buffer)
            .and_then(|text| value(&text, "total_cache").or_else(|| value(&text, "file")));
        GroupUsage { cpu, bytes, cache_bytes }
    }
}

impl CpuTime {
    pub fn since(self, before: CpuTime) -> CpuTime {
        CpuTime {
            all_us: self.all_us.saturating_sub(before.all_us),
            user_us: self.user_us.saturating_sub(before.user_us),
            system_us: self.system_us.saturating_sub(before.system_us),
        }
    }
}

fn value(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

fn parse_split(text: &str) -> (u64, u64) {
    let ticks = |name| ticks_us(value(text, name).unwrap_or(0));
    (ticks("user"), ticks("system"))
}

fn parse_time(text: &str, split: Option<(u64, u64)>) -> Option<CpuTime> {
    if let Ok(all_ns) = text.trim().parse::<u64>() {
        let (user_us, system_us) = split?;
        return Some(CpuTime { all_us: all_ns / 1000, user_us, system_us });
    }
    Some(CpuTime {
        all_us: value(text, "usage_usec")?,
        user_us: value(text, "user_usec")?,
        system_us: value(text, "system_usec")?,
    })
}

/// The directory of the group of `other` for a controller, if it is not the group of `own`.
fn separate_dir(mounts: &str, own: &str, other: &str, controller: &str) -> Option<PathBuf> {
    let path_v1 = |text: &str| in_hierarchy(text, |names| names.split(',').any(|name| name == controller));
    let path_v2 = |text: &str| in_hierarchy(text, str::is_empty);
    let (path, (root, mount)) = match path_v1(other) {
        Some(path) => {
            (Some(path).filter(|path| Some(path) != path_v1(own).as_ref())?, mount_of(mounts, controller)?)
        }
        None => (path_v2(other).filter(|path| Some(path) != path_v2(own).as_ref())?, mount_of(mounts, "")?),
    };
    // The mount may show only a part of the hierarchy.
    let below = if root == "/" { path.as_str() } else { path.strip_prefix(root)? };
    Some(Path::new(mount).join(below.trim_start_matches('/')))
}

/// The group of a hierarchy in `/proc/PID/cgroup`: lines `number:controllers:path`.
fn in_hierarchy(text: &str, wanted: impl Fn(&str) -> bool) -> Option<String> {
    text.lines().find_map(|line| {
        let (names, path) = line.split_once(':')?.1.split_once(':')?;
        wanted(names).then(|| path.to_owned())
    })
}

/// Root and mount point of a controller's hierarchy; of version 2 for an empty name.
fn mount_of<'a>(mounts: &'a str, controller: &str) -> Option<(&'a str, &'a str)> {
    mounts.lines().find_map(|line| {
        let (place, kind) = line.split_once(" - ")?;
        let mut kind = kind.split_whitespace();
        let matches = match kind.next()? {
            "cgroup" => !controller.is_empty() && kind.nth(1)?.split(',').any(|option| option == controller),
            "cgroup2" => controller.is_empty(),
            _ => false,
        };
        let mut place = place.split_whitespace().skip(3);
        matches.then_some((place.next()?, place.next()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n\
        33 31 0:30 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct\n\
        35 31 0:32 /outer /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n\
        41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";

    #[test]
    fn a_group_is_found_where_its_hierarchy_is_mounted() {
        let own = "4:memory:/outer/a\n2:cpu,cpuacct:/\n0::/\n";
        let other = "4:memory:/outer/a/p\n2:cpu,cpuacct:/p\n0::/\n";
        let found = |controller| separate_dir(MOUNTS, own, other, controller);
        assert_eq!(found("cpuacct"), Some("/sys/fs/cgroup/cpu/p".into()));
        assert_eq!(found("memory"), Some("/sys/fs/cgroup/memory/a/p".into()));
        assert_eq!(separate_dir(MOUNTS, own, own, "memory"), None, "it shares ours");
        assert_eq!(
            separate_dir(MOUNTS, "0::/us\n", "0::/us/p\n", "memory"),
            Some("/sys/fs/cgroup/unified/us/p".into())
        );
        assert_eq!(separate_dir("", "", "", "memory"), None);
    }

    #[test]
    fn both_versions_tell_the_same() {
        let split = Some(parse_split("user 3\nsystem 2\n"));
        let one = parse_time("50123456\n", split).unwrap();
        assert_eq!(one, CpuTime { all_us: 50_123, user_us: ticks_us(3), system_us: ticks_us(2) });
        let two = "usage_usec 50123\nuser_usec 30000\nsystem_usec 20000\nnr_periods 0\n";
        assert_eq!(parse_time(two, None).unwrap(), one);
        assert_eq!(parse_time("", split), None);
    }

    #[test]
    fn this_process_has_no_group_of_its_own() {
        assert_eq!(
            ControlGroup::of_process(std::process::id()).usage(&mut ReadBuffer::default()),
            GroupUsage::default()
        );
    }
}
