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

#[test]
fn the_first_lines_are_taken_apart_field_by_field() {
    let assay = Assay::new();
    let log = assay.file("access.log", &combined());
    let text = assay.run(&["logs", "--explain", log]).exits(0).stdout;
    assert!(text.contains("recognised as combined"), "{text}");
    for (word, what, value) in
        [("%h", "client", "192.0.2.7"), ("%l", "(not used)", "-"), ("%b", "bytes of the body", "5")]
    {
        let line = text.lines().find(|line| line.trim_start().starts_with(&format!("{word} "))).expect(word);
        assert!(line.contains(what) && line.ends_with(value), "{line}");
    }
    assert_eq!(text.matches("\nline ").count(), 3, "{text}");
    let format = "%h %l %u %t \"%r\" %>s %b %D %T";
    let timed = assay
        .file("timed.log", "192.0.2.7 - - [10/Oct/2025:13:00:00 +0000] \"GET / HTTP/1.1\" 200 5 1200 0\n");
    let text = assay.run(&["logs", "--explain", timed, "--format", format]).exits(0).stdout;
    assert!(
        text.contains("duration in µs") && text.contains("%T is not used: %D says the duration"),
        "{text}"
    );
}

#[test]
fn a_log_that_cannot_be_read_ends_with_2_and_says_what_would_read_it() {
    let assay = Assay::new();
    let line = "192.0.2.7 - - [10/Oct/2025:13:00:00 +0000] \"GET / HTTP/1.1\" 200 5 \"-\" \"curl/8\"";
    let more = assay.file("more.log", &format!("{line} 0.057 10.0.0.6:8080\n"));
    let json = assay
        .file("app.json", "{\"when\":\"2026-07-01T13:00:02Z\",\"what\":\"GET / HTTP/1.1\",\"result\":200}\n");
    let utf16 = assay.path("utf16.log");
    let units: Vec<u8> = line.encode_utf16().flat_map(u16::to_le_bytes).collect();
    std::fs::write(&utf16, [b"\xff\xfe", &units[..]].concat()).expect("written");
    let utf16 = utf16.to_str().expect("UTF-8");
    for command in ["logs", "size"] {
        for (file, helps) in
            [(more, "nearest format is combined"), (json, "$result"), (utf16, "iconv -f UTF-16")]
        {
            let text = assay.run(&[command, file]).exits(2).stderr;
            assert!(text.contains(helps), "{command}: {text}");
        }
        let text = assay.run(&[command, more, "--format", "common"]).exits(2).stderr;
        assert!(text.contains("could be read as common") && text.contains("character"), "{command}: {text}");
    }
}
