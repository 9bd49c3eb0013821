//! `assay logs` through the real binary: what a reader sees of logs that say little, and of who sent requests.

use serde_json::Value;

use crate::support::{Assay, read};

/// Ten requests a second for three minutes and one second, in Combined; every fourth is a bot's and finds nothing.
fn combined() -> String {
    let line = |number: u32| {
        let second = number / 10;
        let (path, status, agent) = match number % 4 {
            0 => ("/gone", 404, "Googlebot/2.1 (+http://www.google.com/bot.html)"),
            1 => ("/broken", 503, "inventory 1.0"),
            _ => ("/", 200, "Mozilla/5.0 (X11; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0"),
        };
        format!(
            "192.0.2.7 - - [10/Oct/2025:13:{:02}:{:02} +0000] \"GET {path} HTTP/1.1\" {status} 5 \"https://r.example/\" \
             \"{agent}\"\n",
            second / 60,
            second % 60
        )
    };
    (0..1810).map(line).collect()
}

#[test]
fn a_log_without_outcomes_reports_no_misses_and_how_to_log_them_in_every_form() {
    let assay = Assay::new();
    let log = assay.file("access.log", &combined());
    let text = assay.run(&["logs", log]).exits(0).stdout;
    assert!(text.contains("hit ratios      not known") && text.contains("$upstream_cache_status"), "{text}");
    assert!(!text.contains("misses  URL"), "{text}");
    let said = assay.run(&["logs", log, "--json", "--html", "page.html", "--parquet", "figures.parquet"]);
    let document: Value = serde_json::from_str(&said.exits(0).stdout).expect("one JSON document");
    assert_eq!(document["schema"], "assay-logs/2");
    let all = &document["all"];
    for unknown in ["local_hits", "revalidated", "dhr", "bhr", "response"] {
        assert!(all[unknown].is_null(), "{unknown}: {all:#}");
    }
    assert_eq!(document["inputs"][0]["not_logged"][0]["what"], "outcome");
    // The log ends a second into its last step.
    let last = document["time"].as_array().and_then(|steps| steps.last()).expect("steps");
    assert_eq!(last["covered_ms"], 1000.0, "{last:#}");
    let page = read(&assay.path("page.html"));
    assert!(page.contains("To log it, nginx: $upstream_cache_status") && !page.contains("Most misses"));
    assert!(assay.path("figures.parquet").is_file());
}

#[test]
fn agents_referrers_and_failing_urls_are_in_every_form() {
    let assay = Assay::new();
    let log = assay.file("access.log", &combined());
    let document: Value =
        serde_json::from_str(&assay.run(&["logs", log, "--top", "1", "--json"]).exits(0).stdout)
            .expect("JSON");
    let groups = |by: &str| -> Vec<(String, u64)> {
        let all = document["groups"].as_array().expect("groups");
        let grouping = all.iter().find(|grouping| grouping["by"] == by).expect(by);
        let groups = grouping["groups"].as_array().expect("groups").iter();
        groups
            .map(|group| {
                let name = group["name"].as_str().expect("a name").to_owned();
                (name, group["figures"]["requests"].as_u64().expect("a number"))
            })
            .collect()
    };
    assert_eq!(groups("agent-kind"), [("browser".into(), 904), ("bot".into(), 453), ("unknown".into(), 453)]);
    assert_eq!(groups("referrer"), [("r.example".into(), 1810)]);
    let failed = &document["failed"]["by_status"];
    assert_eq!((&failed[0]["status"], &failed[0]["urls"][0]["url"]), (&404.into(), &"/gone".into()));
    assert_eq!(failed[1]["urls"][0]["requests"], 453);
    assert_eq!(document["agents"]["unknown"][0]["text"], "inventory 1.0");
    let text = assay.run(&["logs", log, "--html", "page.html"]).exits(0).stdout;
    for words in [
        "Bots and browsers",
        "Google (bot)",
        "Referring site",
        "URLs with status 400 and above",
        "rules knows",
    ] {
        assert!(text.contains(words), "no `{words}` in:\n{text}");
    }
    let page = read(&assay.path("page.html"));
    assert!(page.contains("Status 404") && page.contains("User agents and referrers"));
}

#[test]
fn a_log_of_which_nothing_is_left_is_an_error_that_leaves_no_file() {
    let assay = Assay::new();
    let log = assay.file("access.log", "");
    assay.run(&["logs", log, "--html", "page.html"]).exits(2).complains("access.log is empty");
    assert!(!assay.path("page.html").exists());
}
