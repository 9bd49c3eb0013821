//! What starts agents where a scheduler gives machines (`contrib/fleet`): the script for Slurm by stand-ins for its commands, through a
//! real NATS server with the configuration that is there.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use assay_testbed::skip;

use crate::samples::SPECIAL;
use crate::support::{Assay, Said, program, read, root};

/// As long as what Kubernetes calls a job by.
const JOB: &str = "123e4567-e89b-12d3-a456-426614174000";

fn contrib(name: &str) -> PathBuf {
    root().join("contrib/fleet").join(name)
}

/// Puts a program into `bin` of the directory.
fn stand_in(assay: &Assay, name: &str, script: &str) {
    use std::os::unix::fs::PermissionsExt;
    let path = assay.path("bin").join(name);
    std::fs::create_dir_all(assay.path("bin")).expect("a writable directory");
    std::fs::write(&path, format!("#!/bin/sh\n{script}")).expect("a writable directory");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("our own file");
}

/// Whether a network of one's own can be made, in which the server has its usual port.
fn may_have_a_network() -> bool {
    let made = Command::new("unshare").args(["--net", "true"]).stderr(Stdio::null()).status();
    let may = made.is_ok_and(|status| status.success());
    if !may {
        skip("no network namespaces (they need root)");
    }
    may
}

/// Runs the script for Slurm on four nodes, which all are this host with different addresses.
fn slurm(assay: &Assay, nodes: usize, arguments: &[&str]) -> Said {
    stand_in(assay, "scontrol", &format!("printf '127.0.0.1\\n'; seq -f 'n%g' 2 {nodes}\n"));
    stand_in(
        assay,
        "srun",
        "while :; do case $1 in --chdir=*) cd \"${1#*=}\" ;; --*) ;; *) break ;; esac; shift; done\n\
         export ASSAY_AGENT=\"--address 127.123.$((ASSAY_INDEX + 0)).1\"\n\
         exec \"$@\"\n",
    );
    let path = std::env::var("PATH").unwrap_or_default();
    let script =
        format!("ip link set lo up && exec {} {}", contrib("slurm.sh").display(), arguments.join(" "));
    let output = Command::new("unshare")
        .args(["--net", "sh", "-c", &script])
        .env("PATH", format!("{}:{path}", assay.path("bin").display()))
        .env("ASSAY", env!("CARGO_BIN_EXE_assay"))
        .env("ASSAY_FLEET", contrib(""))
        .env("SLURM_SUBMIT_DIR", assay.directory.path())
        .env("SLURM_JOB_NODELIST", "n[1-4]")
        .env("SLURM_JOB_ID", JOB)
        .env("TMPDIR", assay.directory.path())
        .current_dir(assay.directory.path())
        .stdin(Stdio::null())
        .output();
    output.expect("unshare starts").into()
}

#[test]
fn a_job_of_four_nodes_makes_a_run_and_leaves_only_its_results() {
    let assay = Assay::new();
    if program(&["nats-server"], "nats-server").is_none() || !may_have_a_network() {
        return;
    }
    let workload = assay.file("special.pg", SPECIAL);
    let said = slurm(&assay, 4, &["run", workload, "--no-live", "--no-report", "--run-dir", "out"]);
    assert!(said.went_well(), "{said:?}");
    let info = read(&assay.path("out/run.json"));
    for name in ["load-3", "cache", "origins"] {
        let name = format!("\"{name}-{}\"", &JOB[..30]);
        assert!(info.contains(&name), "{name} is not in {info}");
    }
    let mut left: Vec<_> = std::fs::read_dir(assay.directory.path())
        .expect("a directory")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
        .collect();
    left.sort();
    assert_eq!(left, ["bin", "out", "special.pg"], "neither passwords nor directories of agents stay");
}

#[test]
fn a_job_without_enough_nodes_or_a_run_is_refused_and_ends_as_its_run_does() {
    let assay = Assay::new();
    if program(&["nats-server"], "nats-server").is_none() || !may_have_a_network() {
        return;
    }
    slurm(&assay, 3, &["run", "demo"]).exits(2).complains("four nodes are needed");
    slurm(&assay, 4, &[]).exits(2).complains("usage: sbatch slurm.sh");
    slurm(&assay, 4, &["run", "no-such-workload"]).exits(2).complains("no-such-workload");
}
