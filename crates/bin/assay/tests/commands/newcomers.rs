//! Somebody who has never seen Assay gets on after a wrong word, a wrong path or a wrong unit.

use crate::support::Assay;

#[test]
fn a_directory_that_is_no_run_is_told_what_it_is_instead() {
    let assay = Assay::new();
    assay.file("notes", "");
    std::fs::create_dir_all(assay.path("runs/first")).expect("a writable directory");
    assay.file("runs/first/run.json", "{}");
    assay.run(&["report", "nowhere"]).exits(2).complains("there is nothing of that name");
    assay.run(&["report", "notes"]).exits(2).complains("it is a file");
    assay.run(&["report", "runs"]).exits(2).complains("it holds runs, such as runs/first");
}

#[test]
fn a_report_that_could_not_be_written_is_refused_before_the_work() {
    let assay = Assay::new();
    assay.file("notes", "");
    std::fs::create_dir(assay.path("run")).expect("a writable directory");
    assay.file("run/run.json", "{}");
    assay.run(&["report", "run", "-o", "none/out"]).exits(2).complains("none is no directory");
    assay.run(&["report", "run", "--hdr", "run"]).exits(2).complains("run is a directory");
    for flag in ["--csv", "--ndjson", "--figures"] {
        assay
            .run(&["report", "run", flag, "notes/x"])
            .exits(2)
            .complains("notes is a file; name a directory");
    }
    assay
        .run(&["report", "run", "--figures", "rate.png"])
        .exits(2)
        .complains("name a directory")
        .complains("rsvg-convert");
    assert!(!assay.path("run/report.html").exists(), "something was made");
}

#[test]
fn a_log_that_cannot_be_read_comes_with_a_way_on() {
    let assay = Assay::new();
    std::fs::create_dir(assay.path("logs")).expect("a writable directory");
    std::fs::write(assay.path("binary"), [0xfe; 4096]).expect("a writable directory");
    assay.run(&["logs", "nowhere.log"]).exits(2).complains("check the path");
    assay.run(&["logs", "logs"]).exits(2).complains("name the logs in it");
    let said = assay.run(&["logs", "binary"]).exits(2).complains("--format");
    assert!(said.stderr.len() < 500, "{}", said.stderr);
    let nothing = assay.command(&["logs", "-"]).stdin(std::process::Stdio::null()).output();
    let said: crate::support::Said = nothing.expect("the binary starts").into();
    said.exits(2).complains("standard input is empty");
}

#[test]
fn a_replay_without_a_target_names_both_kinds() {
    let assay = Assay::new();
    let log = assay.file("urls", "not a URL\n");
    assay.run(&["replay", log]).exits(2).complains("--to HOST:PORT").complains("--proxy PROXY");
    let said = assay.run(&["replay", "--urls", log, "--to", "127.0.0.1:9"]).exits(2);
    let said = said.complains("of 1 line, there is 1 without a usable URL");
    assert!(!said.stderr.contains(" 0 "), "{}", said.stderr);
    let binary = assay.file("access.log", "nothing that is a log\n");
    assay.run(&["replay", binary, "--to", "127.0.0.1:9"]).exits(2).complains("--format");
}

#[test]
fn flags_that_would_do_nothing_are_refused() {
    let assay = Assay::new();
    let log = assay.file("urls", "http://a.example/\n");
    let to = ["replay", "--urls", log, "--to", "127.0.0.1:9"];
    assay.run(&[&to[..], &["--think", "1s"]].concat()).exits(2).complains("--proxy <PROXY>");
    assay.run(&[&to[..], &["--lifetime", "1s"]].concat()).exits(2).complains("--origins <ADDR:PORT>");
    assay.run(&["logs", log, "--of", "front"]).exits(2).complains("--of names a cache of a run");
    let nothing = assay.run(&["logs", log, "--from", "20", "--to", "20"]).exits(2);
    nothing.complains("--from is no earlier than --to");
}

#[test]
fn names_and_numbers_that_are_none_are_told_so() {
    let assay = Assay::new();
    assay.run(&["proxies", "--proxy-dir", "none"]).exits(2).complains("descriptions in none");
    assay
        .run(&["proxies", "show", "nginx", "--proxy-dir", "none"])
        .exits(2)
        .complains("descriptions in none");
    assay.run(&["workloads", "show", "image.pg"]).exits(2).complains("it is called image here");
    assay.run(&["run", "image.pg"]).exits(2).complains("did you mean `image`?");
    assay.run(&["run", "demmo"]).exits(2).complains("did you mean `demo`?");
    assay.run(&["run", "demo", "--seed", "abc"]).exits(2).complains("it is not an integer");
    assay.run(&["compare", "a", "b", "--tolerance", "p99=5"]).exits(2).complains("needs its unit");
    let search = ["run", "demo", "--find-peak", "p99 < 5ms", "--rehearse", "10s", "--run-dir", "r"];
    assay.run(&search).exits(2).complains("a search takes at least 50s");
    assert!(!assay.path("r").exists(), "a run directory was made for nothing");
}

#[test]
fn two_neighbouring_letters_that_changed_places_are_one_mistake_everywhere() {
    let assay = Assay::new();
    for (line, meant) in [
        (&["rnu", "demo"][..], "'run'"),
        (&["run", "dmeo"], "`demo`"),
        (&["run", "demo", "--proxy", "vanrish"], "`varnish`"),
        (&["run", "demo", "--duartion", "5s"], "'--duration'"),
        (&["workloads", "show", "imgae"], "`image`"),
        (&["proxies", "show", "sqiud"], "`squid`"),
        (&["simulate", "figrue-5"], "`figure-5`"),
        (&["cluster", "lcoality"], "`locality`"),
    ] {
        assay.run(line).exits(2).complains(meant);
    }
}

#[test]
fn a_file_or_name_for_another_command_is_told_with_the_line_to_type() {
    let assay = Assay::new();
    let experiment = "workloads = [\"demo\"]\n[[proxy]]\nname = \"builtin\"\n";
    let cluster = assay.run(&["simulate", "figure-5", "--show"]).exits(0).stdout;
    assay.file("x.toml", experiment);
    assay.file("c.toml", &cluster);
    assay.file("s.toml", "listen = \"127.0.0.1:0\"\n[[class]]\nservers = [\"127.0.0.1:9\"]\n");
    assay.file("t.toml", "[[cache]]\nname = \"a\"\n");
    assay.file("w.pg", "");
    for command in ["run", "check"] {
        for (name, kind, line) in [
            ("x.toml", "an experiment", "assay lab x.toml"),
            ("c.toml", "a cluster", "assay simulate c.toml"),
            ("s.toml", "a configuration of the switch", "assay switch s.toml"),
            ("t.toml", "a topology", "assay run WORKLOAD --topology t.toml"),
            ("six-proxies", "an experiment", "assay lab six-proxies"),
            ("locality", "a cluster", "assay simulate locality"),
        ] {
            assay.run(&[command, name]).exits(2).complains(kind).complains(&format!("type: {line}"));
        }
    }
    for (name, line) in [
        ("demo", "assay run demo"),
        ("w.pg", "assay run w.pg"),
        ("c.toml", "assay simulate c.toml"),
        ("s.toml", "assay switch s.toml"),
    ] {
        assay.run(&["lab", name]).exits(2).complains(&format!("type: {line}"));
    }
    assert!(!assay.path("runs").exists(), "something was made");
}

#[test]
fn help_and_version_are_commands_too() {
    let assay = Assay::new();
    for (command, flag) in [
        (&["help"][..], &["--help"][..]),
        (&["help", "run"], &["run", "--help"]),
        (&["help", "workloads", "show"], &["workloads", "show", "--help"]),
        (&["version"], &["--version"]),
    ] {
        let said = assay.run(command).exits(0).stdout;
        assert_eq!(said, assay.run(flag).exits(0).stdout, "{command:?}");
    }
    assert!(assay.run(&["version"]).exits(0).stdout.starts_with("assay 0."));
    assay.run(&["help", "rnu"]).exits(2).complains("rnu");
}

#[test]
fn going_on_with_an_experiment_that_never_began_says_how_to_begin() {
    let assay = Assay::new();
    let name = assay.file("x.toml", "workloads = [\"demo\"]\n[[proxy]]\nname = \"builtin\"\n");
    for resume in [&["lab", name, "--resume"][..], &["lab", name, "--resume", "elsewhere"]] {
        assay
            .run(resume)
            .exits(2)
            .complains("holds no unfinished experiment called x")
            .complains("leave --resume out");
    }
}

#[test]
fn a_result_of_a_form_that_a_run_does_not_have_is_refused_before_it() {
    let assay = Assay::new();
    for name in ["x.csv", "x.md", "x.pdf"] {
        assay.run(&["run", "demo", "-o", name, "--run-dir", "none"]).exits(2).complains(name);
        assert!(!assay.path(name).exists() && !assay.path("none").exists(), "something was made");
    }
    let search = ["run", "demo", "--find-peak", "p99 < 1s", "-o", "x.html", "--run-dir", "none"];
    assay.run(&search).exits(2).complains("peak.html");
}

#[test]
fn a_log_without_a_request_is_told_by_every_command_that_reads_one() {
    let assay = Assay::new();
    assay.file("empty.log", "");
    for command in ["run", "size", "logs"] {
        let said = assay.run(&[command, "empty.log"]);
        assert!(
            said.code.is_some_and(|code| code > 0) && !said.stderr.contains("PGL"),
            "{command}: {said:?}"
        );
        assert!(
            said.stderr.contains("empty") || said.stderr.contains("no request"),
            "{command}: {}",
            said.stderr
        );
    }
}
