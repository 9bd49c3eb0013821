//! A file in place of which something else stands, and commands that read it.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Stdio;

use crate::support::{Assay, Said};

/// What stands in place of a file.
pub const KINDS: [&str; 2] = ["device", "pipe"];

/// Runs a command that would otherwise read until no memory is left, or wait for a writer for ever.
pub fn bounded(assay: &Assay, arguments: &[&str]) -> Said {
    let limits = "ulimit -v 4000000; ulimit -t 30; exec timeout -s KILL 120 \"$@\"";
    let command = assay.command(arguments);
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", limits, "sh"]).arg(command.get_program()).args(command.get_args());
    shell.current_dir(assay.directory.path()).stdin(Stdio::null());
    shell.output().expect("a shell").into()
}

/// Puts a device or a pipe in place of a file while `work` is done.
pub fn without(file: &Path, kind: &str, work: impl FnOnce()) {
    let aside = file.with_file_name("put-aside");
    std::fs::rename(file, &aside).expect("a directory of its own");
    match kind {
        "device" => symlink("/dev/zero", file).expect("a directory of its own"),
        _ => {
            let made = std::process::Command::new("mkfifo").arg(file).status();
            assert!(made.is_ok_and(|status| status.success()), "cannot make a pipe");
        }
    }
    work();
    std::fs::rename(&aside, file).expect("is there");
}

#[track_caller]
pub fn ends(said: &Said, codes: &[i32], case: &str) {
    assert!(said.code.is_some_and(|code| codes.contains(&code)), "{case}: {said:?}");
}
