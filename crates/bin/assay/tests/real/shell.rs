//! What an installation brings beside the program, in real shells and a real `man`.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{Assay, Said, program};

/// Runs a script in a shell that finds the binary in `PATH`; none: the shell is not installed.
fn in_shell(shell: &str, script: &str, assay: &Assay) -> Option<Said> {
    let shell = program(&[shell], shell)?;
    let directory = Path::new(env!("CARGO_BIN_EXE_assay")).parent().expect("a folder");
    let path = format!("{}:{}", directory.display(), std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new(shell);
    command.args(["-c", script]).current_dir(assay.directory.path()).stdin(Stdio::null());
    // Neither history nor settings of whoever runs the tests.
    command.env("PATH", path).env("HOME", assay.directory.path()).env("TERM", "dumb");
    Some(command.output().expect("a shell that starts").into())
}

/// Checks what a shell offers after words of a command line.
#[track_caller]
fn assert_offers(said: &Said, expected: &[&str], not: &[&str]) {
    let offered = |name: &str| said.stdout.lines().any(|line| line.split(['\t', ':']).next() == Some(name));
    for name in expected {
        assert!(offered(name), "{name} is not offered: {said:?}");
    }
    for name in not {
        assert!(!offered(name), "{name} is offered: {said:?}");
    }
}

/// A directory with a run, a workload and an experiment in it.
fn with_files() -> Assay {
    let assay = Assay::new();
    std::fs::create_dir_all(assay.path("runs/demo-builtin-1")).expect("a writable directory");
    assay.file("demolition.pg", "");
    assay.file("demo.toml", "");
    assay
}

#[test]
fn bash_completes_commands_flags_and_names() {
    let assay = with_files();
    let complete = |words: &str| {
        let script = format!(
            "source <(assay completions bash); COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             COMP_TYPE=9; _clap_complete_assay assay \"${{COMP_WORDS[COMP_CWORD]}}\"; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        );
        in_shell("bash", &script, &assay)
    };
    let Some(said) = complete("assay ru") else { return };
    assert_offers(&said, &["run"], &["role", "robots"]);
    let offered = |words| complete(words).expect("bash is there");
    assert_offers(&offered("assay run dem"), &["demo", "demolition.pg"], &["demo.toml", "image"]);
    assert_offers(&offered("assay run demo --reh"), &["--rehearse"], &["--robots"]);
    assert_offers(&offered("assay run demo --proxy va"), &["varnish"], &["squid"]);
    assert_offers(
        &offered("assay run demo --proxy squid --set rep"),
        &["replacement=heap-lfuda"],
        &["prefetch=none"],
    );
    assert_offers(&offered("assay lab si"), &["six-proxies", "siblings"], &["demo"]);
    assert_offers(&offered("assay simulate figure-1"), &["figure-10"], &["figure-2"]);
    assert_offers(&offered("assay report ''"), &["runs/demo-builtin-1"], &["demo"]);
    assert_offers(&offered("assay completions ''"), &["bash", "zsh", "fish"], &[]);
}

#[test]
fn fish_completes_names_with_what_they_are() {
    let assay = with_files();
    let Some(said) = in_shell("fish", "assay completions fish | source; complete -C 'assay run dem'", &assay)
    else {
        return;
    };
    assert_offers(&said, &["demo"], &["image"]);
    assert!(said.stdout.contains("demo\thalf a minute"), "{said:?}");
}

#[test]
fn zsh_completes_names() {
    let assay = with_files();
    // Outside of its line editor zsh has nothing to add matches to; what it would add is printed.
    let script = "compdef() { :; }; _describe() { shift 2; eval 'print -l -- \"${'$1'[@]}\"'; }; \
                  source <(assay completions zsh); words=(assay run dem); CURRENT=3; _clap_dynamic_completer_assay";
    let Some(said) = in_shell("zsh", script, &assay) else { return };
    assert_offers(&said, &["demo"], &["image"]);
    // As it is installed: in a directory of fpath, loaded when Tab is pressed for the first time.
    let installed = "assay completions zsh > _assay; compdef() { :; }; _describe() { shift 2; eval 'print -l -- \"${'$1'[@]}\"'; }; \
                     fpath=($PWD $fpath); autoload -Uz _assay; words=(assay run dem); CURRENT=3; _assay";
    assert_offers(&in_shell("zsh", installed, &assay).expect("zsh is there"), &["demo"], &["image"]);
}

#[test]
fn man_shows_manual_pages() {
    let assay = Assay::new();
    assay.run(&["man", "--dir", "share/man/man1"]).exits(0);
    let manual = assay.path("share/man").display().to_string();
    let Some(man) = program(&["man"], "man-db") else { return };
    let output = Command::new(man).args(["-M", &manual, "assay-lab-show"]).env("MANPAGER", "cat").output();
    let said = Said::from(output.expect("a man that starts")).exits(0);
    assert!(said.stdout.contains("Explain an experiment"), "{said:?}");
}
