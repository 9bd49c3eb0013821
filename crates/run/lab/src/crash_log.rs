//! Processes of a proxy that were killed or crashed, as its own logs tell of them.
//!
//! A proxy of several processes starts another in place of one that has ended, and goes on: nothing is seen from outside but some
//! requests without a response. Its main process writes down how the other one ended; this finds these lines.
//!
//! *Does not:* see the main process itself end ([`crate::real_proxy::RealProxy::exit_message`] does), or name processes that were told to end.

use std::path::Path;

use crate::process::tail;

/// Text that proxies write before the number of a signal (nginx, Squid; httpd; Varnish), in lower case.
const BEFORE_SIGNAL: [&str; 4] =
    ["exited on signal ", "exited due to signal ", "exit signal ", "died signal="];
/// Text that they write before an exit code, which is the number of a signal and 128 (HAProxy).
const BEFORE_CODE: &str = "exited with code ";
/// The signals of kills and crashes: ILL, TRAP, ABRT, BUS, FPE, KILL, SEGV, SYS. With others a process is told to end.
const SIGNALS: [u32; 8] = [4, 5, 6, 7, 8, 9, 11, 31];

/// So much of the end of a log is read: a proxy that has lost a process may have complained of much else since.
const READ_BYTES: u64 = 4 << 20;

/// The lines in the ends of these logs that tell of a process that was killed or crashed.
pub fn crash_lines(logs: impl IntoIterator<Item = impl AsRef<Path>>) -> Vec<String> {
    let ends = logs.into_iter().filter_map(|log| tail(log.as_ref(), READ_BYTES).ok());
    ends.flat_map(|end| end.lines().filter(|line| reports_crash(line)).map(str::to_owned).collect::<Vec<_>>())
        .collect()
}

fn reports_crash(line: &str) -> bool {
    let line = line.to_ascii_lowercase();
    let number = |after: &str| {
        let rest = line.split_once(after)?.1;
        let digits = rest.trim_start_matches(|c: char| !c.is_ascii_digit());
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        digits[..end].parse::<u32>().ok()
    };
    let signal = BEFORE_SIGNAL.iter().find_map(|after| number(after));
    let signal = signal.or_else(|| number(BEFORE_CODE)?.checked_sub(128));
    signal.is_some_and(|signal| SIGNALS.contains(&signal))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_processes_that_were_killed_or_crashed_are_found() {
        for line in [
            "2026/11/23 07:00:00 [alert] 123#123: worker process 124 exited on signal 9",
            "2026/11/23 07:00:00 [alert] 123#123: worker process 124 exited on signal 11 (core dumped)",
            "[core:notice] [pid 1:tid 1] AH00052: child pid 124 exit signal Killed (9)",
            "[core:notice] [pid 1] AH00051: child pid 5 exit signal Segmentation fault (11), possible coredump in /",
            "[ALERT]    (123) : Current worker (124) exited with code 137 (Killed)",
            "Error: Child (124) died signal=9",
            "2026/11/23 07:00:00 kid1| Squid Parent: squid-1 process 124 exited due to signal 9 with status 0",
        ] {
            assert!(reports_crash(line), "{line}");
        }
    }

    #[test]
    fn lines_of_processes_that_were_told_to_end_are_not() {
        for line in [
            "2026/11/23 07:00:00 [notice] 123#123: signal 15 (SIGTERM) received from 1, exiting",
            "2026/11/23 07:00:00 [notice] 123#123: worker process 124 exited with code 0",
            "[WARNING]  (123) : Former worker (124) exited with code 143 (Terminated)",
            "[core:notice] [pid 1] AH00052: child pid 124 exit signal Terminated (15)",
            "Child (124) ended",
            "exit signal ",
            "exited with code 1",
        ] {
            assert!(!reports_crash(line), "{line}");
        }
    }
}
