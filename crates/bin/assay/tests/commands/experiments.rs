//! `assay lab` as people use it: experiments are listed and explained, mistakes found, and what others left behind removed.

use std::path::Path;

use crate::samples::{EXPERIMENT, with_experiment};
use crate::support::{Assay, read, root};

#[test]
fn what_a_killed_assay_left_behind_goes_at_the_next_start_and_nothing_else() {
    let assay = with_experiment();
    let mut owner = std::process::Command::new("sleep").arg("600").spawn().expect("sleep");
    let stat = read(Path::new(&format!("/proc/{}/stat", owner.id())));
    let started =
        stat.rsplit_once(')').expect("a name").1.split_whitespace().nth(19).expect("a start").to_owned();
    let namespace = std::fs::read_link("/proc/self/ns/pid").expect("a namespace").display().to_string();
    let namespace: String = namespace.chars().filter(char::is_ascii_digit).collect();
    let temp = assay.path("temp");
    let left = temp.join(format!("assay-toy-m{}_{started}_{namespace}-x", owner.id()));
    let others = temp.join("assay-toy-others");
    for dir in [&left, &others] {
        std::fs::create_dir_all(dir.join("deep")).expect("a directory");
    }
    let look = || {
        let mut command = assay.command(&["lab", "which.toml", "--dir", "temp"]);
        crate::support::Said::from(command.env("TMPDIR", &temp).output().expect("it starts"))
    };
    assert!(look().exits(2).stderr.contains("is not empty") && left.exists(), "its owner still runs");
    owner.kill().expect("ours");
    owner.wait().expect("ours");
    look().exits(2).complains("removed the work directory");
    assert!(!left.exists() && others.exists());
}

#[test]
fn mistakes_are_found_before_anything_runs() {
    let assay = with_experiment();
    assay.file("wrong.toml", &EXPERIMENT.replace("name =", "nmae ="));
    assay
        .run(&["lab", "wrong.toml"])
        .exits(2)
        .complains("wrong.toml:11: unknown field `nmae`; did you mean `name`?");
    assay.run(&["lab", "none.toml"]).exits(2).complains("cannot read the experiment none.toml");
    assay.file("limited.toml", &format!("{EXPERIMENT}\n[[proxy]]\nname = \"no-such\"\n"));
    let said = assay.run(&["lab", "limited.toml"]).exits(2).complains("there is no proxy called `no-such`");
    assert!(!said.stderr.contains(": runs; ") && !assay.path("runs").join("limited").exists());
    assert_eq!(std::fs::read_dir(assay.path("runs")).map_or(0, Iterator::count), 0, "it left its directory");
}

#[test]
fn an_experiment_is_explained_and_its_cells_are_listed() {
    let assay = with_experiment();
    let words = assay.run(&["lab", "show", "which.toml"]).exits(0).stdout;
    for expected in
        ["Is a cache faster", "builtin, memory 8MB: builtin, memory 8MB", "tiny.pg: 2s", "4 cells, about 28s"]
    {
        assert!(words.contains(expected), "{expected}: {words}");
    }
    let listed = assay.run(&["lab", "which.toml", "--dry-run"]).exits(0).stdout;
    assert_eq!(listed.lines().filter(|line| line.contains("-tiny.pg-builtin-")).count(), 4, "{listed}");
    assert!(!assay.path("runs").exists());
}

#[test]
fn bundled_experiments_are_listed_explained_and_printed_to_be_edited() {
    let assay = Assay::new();
    let listed = assay.run(&["experiments"]).exits(0).stdout;
    let names: Vec<&str> = listed.lines().filter_map(|line| line.split_whitespace().next()).collect();
    for entry in std::fs::read_dir(root().join("experiments")).expect("experiments").flatten() {
        if let Some(name) = entry.file_name().to_string_lossy().strip_suffix(".toml") {
            assert!(names.contains(&name), "{name} is not listed: {listed}");
        }
    }
    for name in names {
        assay.run(&["lab", "show", name]).exits(0);
    }
    let text = assay.run(&["experiments", "show", "siblings"]).exits(0).stdout;
    // Without siblings.pg beside it, the bundled one serves; with one, that one.
    let copy = assay.file("mine.toml", &text);
    assay.run(&["lab", "show", copy]).exits(0);
    assay.file("siblings.pg", "nonsense\n");
    assay.run(&["lab", "show", copy]).exits(2).complains("siblings.pg does not compile");
    assay.run(&["lab", "show", "siblings"]).exits(0);
    let workload = assay.run(&["experiments", "show", "siblings.pg"]).exits(0).stdout;
    assay.file("siblings.pg", &workload);
    assay.run(&["lab", "show", copy]).exits(0);
    assay.run(&["experiments", "show", "sibilngs"]).exits(2).complains("did you mean `siblings`?");
    assay.run(&["lab", "six-proxeis"]).exits(2).complains("did you mean `six-proxies`?");
}

#[test]
fn a_bundled_experiment_runs_by_its_name() {
    let assay = Assay::new();
    let text = assay.run(&["experiments", "show", "quarter-vs-eighth"]).exits(0).stdout;
    assert!(text.contains("quarter-vs-eighth.pg"), "{text}");
    let dry = ["lab", "quarter-vs-eighth", "--dry-run", "--rehearse", "2s", "--skip-missing"];
    let cells = assay.run(&dry).exits(0).stdout;
    assert!(cells.lines().any(|line| line.contains("quarter-vs-eighth.pg")), "{cells}");
}
