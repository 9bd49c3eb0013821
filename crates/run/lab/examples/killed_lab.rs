//! A lab that waits to be killed, for the tests: `killed_lab running|preparing TEMP_DIR`.
//!
//! `running` starts a "proxy" of two processes, prints the first one's id, and does nothing more; `preparing`
//! never comes to its start. The work directory is made in TEMP_DIR.

use assay_lab::description::Description;
use assay_lab::mode::Mode;
use assay_lab::real_proxy::{RealProxy, RealProxyPlan};

const TWO_PROCESSES: &str = r#"
name = "two"
title = "Two Processes"
modes = ["reverse"]
[version]
command = ["/bin/sh", "-c", "echo two/1.0"]
after = "two/"
[start]
command = ["/bin/sh", "-c", "sleep 600 & echo $! > second.pid; wait"]
"#;

const PREPARES: &str = r#"
[[prepare]]
command = ["/bin/sh", "-c", "echo $$ > preparing.pid; exec sleep 600"]
[ready]
timeout-s = 600.0
"#;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let mut text = TWO_PROCESSES.to_owned();
    if arguments[1] == "preparing" {
        text += PREPARES;
    }
    let keep = std::env::temp_dir().join(format!("assay-killed-lab-{}", std::process::id()));
    let proxy = RealProxy::start(RealProxyPlan {
        description: Description::read("two.toml", &text).expect("a description"),
        mode: Mode::Reverse,
        http2: false,
        origin_http2: false,
        listen: ([127, 0, 0, 1], 9).into(),
        origins: Vec::new(),
        memory_bytes: 1,
        disk_bytes: 0,
        cpus: Vec::new(),
        cpu_count: 1,
        procs_files: Vec::new(),
        helper_cpus: Vec::new(),
        descriptors: 100,
        connections: 1,
        peering: None,
        tls: None,
        keep,
        namespace: None,
        requested_from: None,
        temp: Some(arguments[2].clone().into()),
    })
    .await
    .expect("a proxy");
    println!("{}", proxy.pids()[0]);
    std::future::pending::<()>().await;
}
