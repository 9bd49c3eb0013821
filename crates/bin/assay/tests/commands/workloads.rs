//! What `assay check` and `assay workloads` say.

use crate::support::Assay;

/// The digest line of `assay check --json`.
fn digest(assay: &Assay, arguments: &[&str]) -> String {
    let mut all = vec!["check", "--json"];
    all.extend(arguments);
    let said = assay.run(&all).exits(0);
    let document: serde_json::Value = serde_json::from_str(&said.stdout).expect("one JSON document");
    document["stream_digest"].as_str().expect("a digest").to_owned()
}

#[test]
fn the_stream_digest_is_the_same_for_any_number_of_threads() {
    let assay = Assay::new();
    for workload in ["demo", "image", "mixed"] {
        let one = digest(&assay, &[workload, "--rehearse", "60s", "--stream-digest", "20", "--threads", "1"]);
        for threads in ["2", "4"] {
            let other = digest(
                &assay,
                &[workload, "--rehearse", "60s", "--stream-digest", "20", "--threads", threads],
            );
            assert_eq!(one, other, "{workload} with {threads} threads");
        }
    }
}

#[test]
fn another_seed_is_another_stream() {
    let assay = Assay::new();
    let one = digest(&assay, &["demo", "--stream-digest", "5"]);
    assert_eq!(one, digest(&assay, &["demo", "--stream-digest", "5", "--seed", "1"]));
    assert_ne!(one, digest(&assay, &["demo", "--stream-digest", "5", "--seed", "2"]));
}

#[test]
fn a_check_explains_robots_origins_contents_and_phases() {
    let said = Assay::new().run(&["check", "demo"]).exits(0).stdout;
    for words in ["200 robots", "2 origins", "content \"news\"", "top2", "stream digest"] {
        assert!(said.contains(words), "no `{words}` in:\n{said}");
    }
}

#[test]
fn a_check_of_a_published_listing_names_what_it_does_not_act_on() {
    let assay = Assay::new();
    for workload in ["image", "mixed"] {
        let said = assay.run(&["check", workload]).exits(0);
        assert!(said.stdout.contains("top1"), "{}", said.stdout);
    }
}

#[test]
fn a_bundled_workload_can_be_printed_changed_and_checked() {
    let assay = Assay::new();
    let text = assay.run(&["workloads", "show", "demo"]).exits(0).stdout;
    let changed = text.replace("** 200", "** 7");
    assert_ne!(text, changed);
    let name = assay.file("mine.pg", &changed);
    let said = assay.run(&["check", name]).exits(0).stdout;
    assert!(said.contains("7 robots"), "{said}");
}

#[test]
fn bundled_workloads_are_listed_and_each_can_be_explained() {
    let assay = Assay::new();
    let said = assay.run(&["workloads"]).exits(0).stdout;
    let names: Vec<&str> = said
        .lines()
        .filter(|line| line.starts_with("  "))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    for name in ["demo", "image", "mixed", "polymix-4", "webaxe-4", "srvlb-l7-4", "api"] {
        assert!(names.contains(&name), "{said}");
    }
    for name in names {
        let explained = assay.run(&["check", name, "--rehearse", "60s"]).exits(0).stdout;
        assert!(explained.contains("stream digest"), "{name}: {explained}");
    }
}

#[test]
fn proxies_are_listed_with_what_to_install() {
    let said = Assay::new().run(&["proxies"]).exits(0).stdout;
    for name in ["builtin", "direct", "varnish", "nginx", "squid"] {
        assert!(said.lines().any(|line| line.starts_with(name)), "{said}");
    }
}
