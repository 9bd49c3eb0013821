//! What do processes and all their descendants use?

use std::fs;
use std::path::Path;

/// What a tree of processes has used since it began, and holds now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// User and system time.
    pub cpu_us: u64,
    /// Time that threads were ready to run and waited for a processor.
    pub run_delay_us: u64,
    /// Resident memory.
    pub rss_bytes: u64,
    /// Open file descriptors.
    pub descriptors: u64,
}

/// Reads the accounts that the kernel keeps of processes.
#[derive(Debug)]
pub struct Accounts {
    page_bytes: u64,
}

impl Default for Accounts {
    fn default() -> Self {
        Self { page_bytes: rustix::param::page_size() as u64 }
    }
}

/// Clock ticks of the kernel's accounts, in microseconds.
pub fn ticks_us(ticks: u64) -> u64 {
    ticks * 1_000_000 / rustix::param::clock_ticks_per_second().max(1)
}

impl Accounts {
    /// The sum over the processes and all their descendants.
    pub fn usage(&self, roots: &[u32]) -> Usage {
        let mut sum = Usage::default();
        let mut open: Vec<u32> = roots.to_vec();
        // Bounded: a tree that grows faster than it is walked is not one of ours.
        let mut left = 4096;
        while let Some(pid) = open.pop() {
            left -= 1;
            if left == 0 {
                break;
            }
            self.add_process(pid, &mut sum, &mut open);
        }
        sum
    }

    fn add_process(&self, pid: u32, sum: &mut Usage, open: &mut Vec<u32>) {
        let proc = format!("/proc/{pid}");
        let Some(stat) = fs::read_to_string(format!("{proc}/stat")).ok().and_then(|text| parse_stat(&text))
        else {
            return;
        };
        sum.cpu_us += ticks_us(stat.ticks);
        sum.rss_bytes += stat.rss_pages * self.page_bytes;
        sum.descriptors += count_descriptors(Path::new(&format!("{proc}/fd")));
        let Ok(threads) = fs::read_dir(format!("{proc}/task")) else { return };
        for thread in threads.flatten() {
            let path = thread.path();
            if let Ok(text) = fs::read_to_string(path.join("schedstat")) {
                sum.run_delay_us += parse_run_delay_ns(&text) / 1000;
            }
            if let Ok(text) = fs::read_to_string(path.join("children")) {
                open.extend(text.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
            }
        }
    }
}

/// What is read of `/proc/PID/stat`.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    /// User and system time, with that of children that ended and were waited for.
    ticks: u64,
    rss_pages: u64,
}

fn parse_stat(text: &str) -> Option<Stat> {
    // The name, in parentheses, may hold anything: fields are counted from behind the last one.
    let (_, rest) = text.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    Some(Stat { ticks: number(14)? + number(15)? + number(16)? + number(17)?, rss_pages: number(24)? })
}

fn parse_run_delay_ns(schedstat: &str) -> u64 {
    schedstat.split_whitespace().nth(1).and_then(|delay| delay.parse().ok()).unwrap_or(0)
}

fn count_descriptors(dir: &Path) -> u64 {
    // Since Linux 6.2 the size of the directory is the number of descriptors; before, it is 0.
    match dir.metadata().map(|meta| meta.len()) {
        Ok(0) => fs::read_dir(dir).map_or(0, |entries| entries.count() as u64),
        Ok(count) => count,
        Err(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_name_with_parentheses_confuses_nobody() {
        let text = "7 (a) b (c)) S 1 7 7 0 -1 4194560 1 2 3 4 10 20 30 40 20 0 1 0 5 1000 77 0 0";
        assert_eq!(parse_stat(text), Some(Stat { ticks: 100, rss_pages: 77 }));
        assert_eq!(parse_stat("7 (gone"), None);
    }

    #[test]
    fn the_time_that_a_thread_waited_is_the_second_number() {
        assert_eq!(parse_run_delay_ns("5000 7000 3\n"), 7000);
        assert_eq!(parse_run_delay_ns(""), 0);
    }
}
