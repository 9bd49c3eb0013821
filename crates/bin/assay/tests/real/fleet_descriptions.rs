//! Descriptions of proxies on several machines: an agent goes by those that are installed at it, and by those of a coordinator only
//! where it was told so.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use crate::fleet::{Up, due, info};
use crate::samples::SPECIAL;
use crate::support::{Assay, program, send};

/// An agent beside those of `assay fleet up`.
struct Agent(Child);

impl Agent {
    fn start(assay: &Assay, up: &Up, name: &str, more: &[&str]) -> Self {
        let flags = ["agent", "--nats", &up.url, "--name", name];
        let mut command = assay.command(&[&flags[..], more].concat());
        command.env("TMPDIR", assay.directory.path()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary starts");
        let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines().map_while(Result::ok);
        assert!(lines.any(|line| line.contains("connected to")), "the agent {name} connects");
        std::thread::spawn(move || lines.for_each(drop));
        Self(child)
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        send(&self.0, libc::SIGINT);
        // It may have ended before.
        let _ = self.0.wait();
    }
}

#[test]
fn a_description_of_ones_own_is_used_where_it_is_installed_or_accepted_and_nowhere_else() {
    let assay = Assay::new();
    if program(&["nginx", "/usr/sbin/nginx"], "nginx").is_none() {
        return;
    }
    let Some(up) = Up::start(&assay, "3") else { return };
    let workload = assay.file("special.pg", SPECIAL);
    let text = assay.run(&["proxies", "show", "nginx"]).exits(0).stdout;
    let mine = text.replacen("name = \"nginx\"", "name = \"mine\"", 1);
    assert_ne!(mine, text, "it is another description");
    std::fs::create_dir(assay.path("installed")).expect("a directory");
    assay.file("installed/mine.toml", &mine);
    assay.file("other.toml", &format!("{mine}\n# It differs.\n"));
    let run = |description: &str, on: &str, name: &str| {
        let flags = ["run", workload, "--fleet", &up.url, "--no-report", "--no-live", "--robots-on", "m1"];
        let proxy = ["--origins-on", "m3", "--proxy", description, "--proxy-on", on, "--run-dir", name];
        assay.run(&[&flags[..], &proxy].concat())
    };
    run("installed/mine.toml", "m2", "none").exits(2).complains("no agent for the proxy has mine: m2 has ");
    assay
        .run(&["agent", "--nats", &up.url, "--name", "m8", "--proxy-dir", "no-such-directory"])
        .exits(2)
        .complains("no-such-directory");

    let own = Agent::start(&assay, &up, "m8", &["--address", "127.0.8.8", "--proxy-dir", "installed"]);
    run("other.toml", "m8", "none").exits(2).complains("the agent m8 has another description of mine");
    assert!(!assay.path("none").exists(), "what is refused here leaves nothing");
    let said = run("installed/mine.toml", "m8", "installed-there");
    assert!(said.went_well(), "{said:?}");
    // What a coordinator was told of an agent holds until that is started again.
    assay.file("as-before.toml", &mine);
    assay.file("installed/mine.toml", &format!("{mine}\n# It has changed.\n"));
    run("as-before.toml", "m8", "changed").complains("has changed since this agent was started");
    assay.file("installed/mine.toml", &mine);
    drop(own);

    let _open = Agent::start(&assay, &up, "m9", &["--address", "127.0.9.9", "--accept-descriptions"]);
    let list = assay.run(&["fleet", "--nats", &up.url]).exits(0).stdout;
    assert_eq!(list.matches("any that a run describes").count(), 1, "{list}");
    // One that cannot be carried out is refused by the agent, before anything starts.
    let no_program =
        mine.replace("nginx", "no-such-program").replacen("name = \"mine\"", "name = \"gone\"", 1);
    assay.file("gone.toml", &no_program);
    run("gone.toml", "m9", "gone").exits(2).complains("the agent m9 refused: ").complains("no-such-program");
    let said = run("other.toml", "m9", "sent");
    assert!(said.went_well(), "{said:?}");
    let versions = ["installed-there", "sent"].map(|name| info(&assay.path(name)).target.version);
    assert!(versions[0] == versions[1] && versions[0].starts_with('1'), "{versions:?}");
    assert_eq!(due(&assay.path("sent")), due(&assay.path("installed-there")), "requests, hits and errors");
    assert_eq!(due(&assay.path("sent")).3, 0, "no errors");
    assert!(assay.path("sent/proxy").is_dir(), "what the proxy wrote is brought");
}
