//! `assay size --prove` with the policies that the built-in proxy can have, each held against that proxy on a listener of its own.

use serde_json::Value;

use crate::support::Assay;

/// Three objects again and again, and others once each between them: more than a small cache holds under LRU, and few enough for one that
/// counts requests.
fn scanned() -> String {
    let again = || ["a", "b", "c"].map(String::from);
    let mut names: Vec<String> = again().into_iter().chain(again()).collect();
    for round in 0..6 {
        names.extend(again());
        names.extend((0..10).map(|one| format!("once-{round}-{one}")));
    }
    let line = |(second, name): (usize, &String)| {
        format!(
            "192.0.2.7 - - [10/Oct/2025:13:{:02}:{:02} +0000] \"GET /{name} HTTP/1.1\" 200 40000 \"-\" \"agent\"\n",
            second / 60,
            second % 60
        )
    };
    names.iter().enumerate().map(line).collect()
}

#[test]
fn every_policy_that_is_named_is_predicted_and_measured_on_the_built_in_proxy() {
    let assay = Assay::new();
    let log = assay.file("access.log", &scanned());
    let arguments = [
        "size",
        log,
        "--policy",
        "lru,lfu,belady",
        "--prove",
        "builtin",
        "--at",
        "420KB",
        "--speed",
        "40",
        "--dir",
        "proof",
        "--json",
    ];
    let document: Value = serde_json::from_str(&assay.run(&arguments).exits(0).stdout).unwrap();
    let cells = document["proof"]["cells"].as_array().unwrap();
    let ratio = |cell: &Value, name: &str| cell[name]["dhr"].as_f64().unwrap();
    let policies: Vec<_> = cells.iter().map(|cell| cell["policy"].as_str().unwrap()).collect();
    assert_eq!(policies, ["lru", "lfu"]);
    // Of 84 requests: three are hits of LRU before the others come, and all later ones for the three objects are hits of LFU.
    assert_eq!([ratio(&cells[0], "predicted"), ratio(&cells[1], "predicted")], [6.0 / 84.0, 21.0 / 84.0]);
    for cell in cells {
        // Less than half of what is between the two: where a machine stands still, requests overtake each other.
        assert!((ratio(cell, "measured") - ratio(cell, "predicted")).abs() < 0.08, "{cell}");
    }
    assert!(assay.path("proof/builtin-lfu-430080-1/1/replay.json").is_file());
}
