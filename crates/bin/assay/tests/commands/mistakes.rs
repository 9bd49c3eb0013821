//! What happens when something is wrong. One clear message, the right exit code, nothing left running.

use std::net::TcpListener;

use crate::support::Assay;

/// A workload that is right and runs for two seconds.
const SMALL: &str = r#"
Content C = { kind = "c"; size = const(1KB); cachable = 100%; };
Server S = { kind = "s"; contents = [C]; direct_access = contents; addresses = ['10.0.0.1:80']; };
Robot R = { kind = "r"; origins = S.addresses; req_rate = 10/sec; recurrence = 50%;
    pop_model = { pop_distr = popUnif(); }; addresses = ['10.0.1.1-4']; };
Phase P = { name = "p"; goal.duration = 2sec; };
schedule(P);
use(S, R);
"#;

#[test]
fn help_shows_commands_examples_and_exit_codes() {
    let said = Assay::new().run(&["--help"]).exits(0).stdout;
    for words in
        ["Commands:", "run ", "check ", "report ", "proxies ", "workloads ", "Examples:", "96 undecided"]
    {
        assert!(said.contains(words), "no `{words}` in:\n{said}");
    }
    assert!(!said.contains("role"), "an inner command is shown:\n{said}");
}

#[test]
fn help_of_a_command_groups_its_flags() {
    let said = Assay::new().run(&["run", "--help"]).exits(0).stdout;
    for words in ["Target:", "Workload:", "Results:", "This machine:", "Examples:"] {
        assert!(said.contains(words), "no `{words}` in:\n{said}");
    }
}

#[test]
fn usage_errors_exit_with_2_and_name_the_mend() {
    let assay = Assay::new();
    assay.run(&[]).exits(2).complains("Usage:");
    assay.run(&["runn", "demo"]).exits(2).complains("'run'");
    assay.run(&["run", "demo", "--porxy", "nginx"]).exits(2).complains("--proxy");
    assay.run(&["run", "demo", "--rehearse", "60"]).exits(2).complains("60s");
    assay.run(&["run", "demo", "--memory", "64"]).exits(2).complains("64MB");
    assay.run(&["run", "demo", "--direct", "--proxy", "nginx"]).exits(2).complains("--direct");
    assay.run(&["run", "demo", "--forward", "--reverse"]).exits(2).complains("--forward");
    assay.run(&["run", "demo", "--robot-link", "delay=40"]).exits(2).complains("40ms");
    assay.run(&["run", "demo", "--origin-link", "speed=1Mbit/s"]).exits(2).complains("delay, jitter, loss");
    assay.run(&["run", "demo", "--scale-capacity"]).exits(2).complains("--rehearse");
}

#[test]
fn a_file_that_is_something_else_is_told_apart() {
    let assay = Assay::new();
    assay.file("half.toml", "title = \"x\n");
    assay.run(&["run", "half.toml"]).exits(2).complains("is a TOML file").complains("assay lab");
    assay.file("nginx.conf", "events {}\n");
    let own = assay.run(&["run", "demo", "--proxy", "nginx.conf"]).exits(2);
    own.complains("a configuration of your own").complains("HOST:PORT");
}

#[test]
fn a_result_that_could_not_be_written_is_refused_before_the_run() {
    let assay = Assay::new();
    assay.run(&["run", "demo", "-o", "nowhere/result.txt"]).exits(2).complains("nowhere is no directory");
    assay.run(&["run", "demo", "-o", "."]).exits(2).complains("is a directory");
}

#[test]
fn a_workload_that_is_not_there_exits_with_2() {
    Assay::new().run(&["run", "nowhere.pg"]).exits(2).complains("nowhere.pg").complains("`assay workloads`");
}

#[test]
fn an_error_in_a_workload_is_shown_with_its_place() {
    let assay = Assay::new();
    let name = assay.file("broken.pg", "Robot R = {\n  req_rat = 5/sec;\n};\n");
    for command in ["check", "run"] {
        assay.run(&[command, name]).exits(2).complains("broken.pg:2:").complains("req_rate");
    }
}

#[test]
fn a_workload_that_is_not_text_or_is_a_directory_exits_with_2() {
    let assay = Assay::new();
    std::fs::write(assay.path("binary.pg"), [0xff, 0xfe, 0x00, 0x80]).expect("a writable directory");
    assay.run(&["check", "binary.pg"]).exits(2).complains("cannot read binary.pg: it is not text");
    assay.run(&["check", "."]).exits(2).complains("it is a directory");
}

#[test]
fn what_is_no_regular_file_is_refused_before_it_is_read() {
    let assay = Assay::new();
    let words = "it is a device, and a regular file is needed";
    assay.run(&["check", "/dev/zero"]).exits(2).complains(words);
    let include = assay.file("include.pg", "#include \"/dev/zero\"\n");
    assay.run(&["check", include]).exits(2).complains(words);
    let table = assay.file("table.pg", &format!("{SMALL}\nsize_distr d = table(\"/dev/zero\", \"size\");\n"));
    assay.run(&["check", table]).exits(2).complains(words);
    assay.run(&["switch", "/dev/zero"]).exits(2).complains(words);
    assay.run(&["lab", "/dev/zero"]).exits(2).complains(words);
    assay.run(&["simulate", "/dev/zero"]).exits(2).complains(words);
    assay.run(&["run", "demo", "--topology", "/dev/zero"]).exits(2).complains(words);
    assay.run(&["spe", "--rules", "/dev/zero", "--duration", "1s"]).complains(words);
    assay.run(&["replay", "--urls", "/dev/zero", "--to", "127.0.0.1:9"]).exits(2).complains(words);
}

#[test]
fn an_escape_sequence_in_what_is_read_is_shown_and_not_obeyed() {
    let assay = Assay::new();
    let hostile = "\u{1b}[2J\u{1b}]0;owned\u{7}";
    let toml = assay.file("hostile.toml", &format!("listen = \"{hostile}\"\n"));
    let pgl = assay.file("hostile.pg", &format!("Robot {hostile} = {{ }};\n"));
    for typed in [["switch", toml], ["lab", toml], ["check", pgl], ["run", hostile]] {
        let said = assay.run(&typed).exits(2).stderr;
        assert!(
            !said.contains('\u{7}') && !said.contains("\u{1b}[2J") && !said.contains("\u{1b}]"),
            "{said:?}"
        );
    }
}

#[test]
fn a_workload_without_agents_is_told_in_one_message() {
    let assay = Assay::new();
    let name = assay.file("nothing.pg", "// Nothing at all.");
    let said = assay.run(&["run", name]).exits(2).complains("uses no servers and no robots").stderr.clone();
    assert!(!said.contains("nothing is scheduled"), "{said}");
}

#[test]
fn a_proxy_that_the_workload_names_is_said_to_be_unused() {
    let assay = Assay::new();
    let robot = r#"kind = "r"; http_proxies = ['10.0.2.1:3128'];"#;
    let name = assay.file("named.pg", &SMALL.replace(r#"kind = "r";"#, robot));
    let said = assay.run(&["check", name]).exits(0).stdout;
    assert_eq!(said.matches("note: the workload names the proxy 10.0.2.1:3128;").count(), 1, "{said}");
}

#[test]
fn remarks_about_a_bundled_workload_are_for_who_checks_it() {
    let assay = Assay::new();
    assay.run(&["check", "image"]).exits(0).complains("`cntSimple` is never used");
    // It is refused after the workload was compiled.
    let search = ["run", "image", "--find-peak", "p99 < 1s", "--peak-step", "500ms"];
    let said = assay.run(&search).exits(2).complains("whole seconds").stderr.clone();
    assert!(!said.contains("cntSimple") && !said.contains("note:"), "{said}");
}

#[test]
fn an_unknown_proxy_exits_with_2_and_names_those_that_are_known() {
    let assay = Assay::new();
    assay.run(&["run", "demo", "--proxy", "varnihs"]).exits(2).complains("varnihs").complains("varnish");
    assay.run(&["run", "demo", "--proxy", "missing.toml"]).exits(2).complains("missing.toml");
    assert!(!assay.path("runs").exists(), "a run directory was made for nothing");
}

#[test]
fn a_setting_of_the_built_in_proxy_that_is_none_exits_with_2_and_names_what_there_is() {
    let assay = Assay::new();
    for (setting, words) in [
        ("policy=belady", "s3-fifo, 2q"),
        ("admission=some", "one of all, second, tinylfu, or a size"),
        ("polcy=lru", "it has prefetch, policy, admission"),
    ] {
        let ran = assay.run(&["run", "demo", "--set", setting]).exits(2);
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
    }
}

#[test]
fn a_public_target_must_be_owned() {
    let assay = Assay::new();
    // Set aside for documentation: nobody is there. And nothing is sent.
    let said = assay.run(&["run", "demo", "--proxy", "192.0.2.1:80", "--no-live"]).exits(2);
    said.complains("--i-own-this-target");
}

#[test]
fn a_port_in_use_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let assay = Assay::new();
    let name = assay.file("small.pg", SMALL);
    let said = assay.run(&["run", name, "--origin-listen", &address, "--run-dir", "r"]);
    assert!(matches!(said.code, Some(1 | 2)), "{said:?}");
    said.complains(&address);
}

#[test]
fn a_run_directory_that_cannot_be_made_is_named() {
    let assay = Assay::new();
    assay.file("file", "");
    let name = assay.file("small.pg", SMALL);
    let said = assay.run(&["run", name, "--run-dir", "file/run"]);
    assert!(matches!(said.code, Some(1 | 2)), "{said:?}");
    said.complains("file/run");
}

#[test]
fn a_run_directory_with_something_in_it_is_left_alone() {
    let assay = Assay::new();
    std::fs::create_dir(assay.path("full")).expect("a writable directory");
    assay.file("full/precious", "mine");
    let name = assay.file("small.pg", SMALL);
    assay.run(&["run", name, "--run-dir", "full"]).exits(2).complains("not empty");
    assert_eq!(std::fs::read_dir(assay.path("full")).expect("still there").count(), 1);
}

#[test]
fn a_report_of_no_run_exits_with_2() {
    let assay = Assay::new();
    assay.run(&["report", "nowhere"]).exits(2).complains("nowhere");
    std::fs::create_dir(assay.path("empty")).expect("a writable directory");
    assay.run(&["report", "empty"]).exits(2).complains("not a run directory");
}

#[test]
fn the_number_of_origin_addresses_must_be_right() {
    let assay = Assay::new();
    let said = assay.run(&["run", "demo", "--origin-listen", "127.0.0.1:0"]).exits(2);
    said.complains("--origin-listen");
}

#[test]
fn too_few_file_descriptors_are_told_with_the_numbers_before_anything_starts() {
    let assay = Assay::new();
    let line = format!("ulimit -n 256; exec '{}' run image --run-dir r", env!("CARGO_BIN_EXE_assay"));
    let mut command = std::process::Command::new("/bin/sh");
    command.args(["-c", &line]).current_dir(assay.directory.path());
    let said: crate::support::Said = command.output().expect("a shell").into();
    let said =
        said.exits(2).complains("4000 connections").complains("256 (the limit of a process, ulimit -n)");
    assert!(!said.stderr.contains("starting"), "{}", said.stderr);
    assert!(!assay.path("r").exists(), "a run directory was made for nothing");
}

#[test]
fn a_mistake_in_a_description_is_found_before_anything_starts() {
    const GOOD: &str = r#"
name = "short"
title = "Short Proxy"
modes = ["reverse"]
[version]
command = ["/bin/sh", "-c", "echo short/1.0"]
after = "short/"
[start]
command = ["/bin/sh", "-c", "exit 7"]
"#;
    let mistakes = [
        (GOOD.replace("[start]", "[strat]"), "short.toml:8: unknown field `strat`"),
        (GOOD.replace("exit 7", "exit {{ seven }}"), "{{ seven }}"),
        (GOOD.replace("modes =", "modes"), "short.toml:4:"),
        (
            GOOD.replace("/bin/sh\", \"-c\", \"echo", "/bin/none\", \"-c\", \"echo"),
            "`/bin/none` was not found",
        ),
        (String::new(), "missing field `name`"),
    ];
    for (text, complaint) in mistakes {
        let assay = Assay::new();
        let (workload, short) = (assay.file("small.pg", SMALL), assay.file("short.toml", &text));
        assay.run(&["run", workload, "--proxy", short, "--run-dir", "r"]).exits(2).complains(complaint);
        assert!(!assay.path("r").exists(), "a run directory was made for nothing");
    }
}
