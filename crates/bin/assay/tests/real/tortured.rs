//! Faults at random instants, a few of those that `make torture` injects: nothing of a command is left, and what it recorded can be read.

use std::path::Path;
use std::process::Command;

use assay_testbed::skip;

/// As many as take a minute beside the other tests.
const FAULTS: &str = "20";

/// Namespaces of their own, for each fault.
fn may_unshare() -> bool {
    let there = ["unshare", "ip", "iptables", "python3"].iter().all(|program| {
        let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
        std::env::split_paths(&path).any(|dir| dir.join(program).exists())
    });
    let may = there && rustix::process::geteuid().is_root();
    if !may {
        skip("faults need root, and `unshare`, `ip`, `iptables` and `python3`");
    }
    may
}

#[test]
fn faults_at_random_instants_leave_nothing_and_no_unreadable_record() {
    if !may_unshare() {
        return;
    }
    let kept = tempfile::tempdir().expect("a directory");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../scripts/torture.sh");
    let output = Command::new(script)
        .args(["--faults", FAULTS, "--seed", "7", "--at-once", "3", "--dir"])
        .arg(kept.path())
        .env("ASSAY", env!("CARGO_BIN_EXE_assay"))
        .output()
        .expect("a script that can be started");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains(&format!("{FAULTS} faults, 0 with a problem")), "{said}");
}
