//! `assay size --prove` through the real binary: what was predicted is measured.

use serde_json::Value;

use crate::support::Assay;

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("one JSON document")
}

/// Objects of 1 KB, 100 requests a second for two seconds.
const SHORT: &str = r#"
    Content cntAny = { kind = "any"; size = const(1KB); cachable = 100%; };
    Server S = { kind = "s"; contents = [ cntAny ]; direct_access = contents; addresses = ['127.0.0.1:8080']; };
    Robot R = {
        kind = "r"; req_rate = 10/sec; recurrence = 60%; interests = ["public"]; pop_model = { pop_distr = popUnif(); };
        origins = S.addresses; addresses = [ '127.0.0.1' ** 10 ];
    };
    Phase phAll = { name = "all"; goal.duration = 2sec; };
    schedule(phAll);
    use(S, R);
"#;

/// Takes the time of a run, and of its start and end.
#[test]
fn a_prediction_is_shown_beside_what_the_proxy_hit_and_a_complete_experiment_is_only_read() {
    let assay = Assay::new();
    assay.file("short.pg", SHORT);
    let arguments = [
        "size", "short.pg", "--prove", "built-in", "--at", "1GB", "--dir", "proof", "--policy", "lru",
        "--json",
    ];
    let document = json(&assay.run(&arguments).exits(0).stdout);
    let cell = &document["proof"]["cells"][0];
    assert_eq!([&cell["proxy"], &cell["runs"]], [&Value::from("builtin"), &Value::from(1)]);
    let (predicted, measured) =
        (cell["predicted"]["dhr"].as_f64().unwrap(), cell["measured"]["dhr"].as_f64().unwrap());
    // Two hundred requests, of which some may come while another one for their object is on its way.
    assert!(predicted > 0.1 && (predicted - measured).abs() < 0.1, "{cell}");
    let again = json(&assay.run(&arguments).exits(0).stdout);
    assert_eq!(again["proof"], document["proof"]);
}

#[test]
fn a_log_is_replayed_through_a_proxy_and_a_complete_replay_is_only_read() {
    let assay = Assay::new();
    // In turn, three requests for each of 30 objects, and POSTs, which are not replayed.
    let line = |number: u32| {
        let method = if number % 10 == 9 { "POST" } else { "GET" };
        format!(
            "192.0.2.7 - - [10/Oct/2025:13:55:{:02} +0000] \"{method} /{} HTTP/1.1\" 200 1000 \"-\" \"agent\"\n",
            number / 30,
            number % 30
        )
    };
    let log = assay.file("access.log", &(0..90).map(line).collect::<String>());
    let arguments = [
        "size", log, "--policy", "lru", "--prove", "builtin", "--at", "8MB", "--speed", "10", "--dir",
        "proof", "--json",
    ];
    let proof = json(&assay.run(&arguments).exits(0).stdout)["proof"].clone();
    let cell = &proof["cells"][0];
    // Of 81 GETs, those for 27 objects are the first.
    let [predicted, measured] =
        ["predicted", "measured"].map(|name| cell[name]["dhr"].as_f64().expect("a ratio"));
    assert!((predicted - 54.0 / 81.0).abs() < 1e-9, "{cell}");
    assert!((measured - predicted).abs() < 0.02, "{cell}");
    let result = assay.path("proof/builtin-8388608-1/1/replay.json");
    let made = std::fs::metadata(&result).expect("a result").modified().expect("a time");
    let again = json(&assay.run(&arguments).exits(0).stdout)["proof"].clone();
    assert_eq!(again, proof);
    assert_eq!(
        std::fs::metadata(&result).expect("a result").modified().expect("a time"),
        made,
        "it was not replayed again"
    );
}
