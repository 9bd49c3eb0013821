//! A faulty proxy is caught: each fault under its own name, every time.

use std::process::Command;

use crate::faulty::{Fault, Faulty};
use crate::run_command::{Ran, own_address, run, workload};

/// Exit code of a run whose target served wrong content.
const UNMET: i32 = 99;

/// Runs a workload through a forwarder with this fault; what it did wrong comes back with what was found.
fn through(fault: Fault, workload_file: &str, flags: &[&str]) -> (u64, Ran) {
    let origin = own_address(9000);
    let forwarder = Faulty::start(&own_address(8080).to_string(), origin, fault);
    let (file, target, origin) = (workload(workload_file), forwarder.address.to_string(), origin.to_string());
    let plain =
        [file.to_str().expect("UTF-8"), "--proxy", target.as_str(), "--origin-listen", origin.as_str()];
    let ran = run(&[&plain, flags].concat());
    (forwarder.injected(), ran)
}

/// The fault was found as often as it happened, and nothing else was.
fn is_caught(fault: Fault, workload_file: &str, kind: &str) {
    let (injected, ran) = through(fault, workload_file, &[]);
    assert!(injected > 20, "the forwarder got only {injected} responses wrong");
    assert_eq!(ran.errors(kind), injected, "{kind} in {}", ran.json["total"]["errors"]);
    assert_eq!(ran.errors_total(), injected, "{}", ran.json["total"]["errors"]);
    assert_eq!(ran.code, UNMET, "{}", ran.json["headline"]);
}

/// The same, where it was allowed, fails no run.
fn is_allowed(fault: Fault, workload_file: &str, kind: &str) {
    let (injected, ran) = through(fault, workload_file, &["--allow", kind]);
    assert_eq!((ran.errors(kind), ran.code), (injected, 0), "{}", ran.json["requirements"]);
}

#[test]
fn an_honest_forwarder_causes_no_error() {
    let (injected, ran) = through(Fault::None, "plain.pg", &[]);
    assert_eq!((injected, ran.errors_total()), (0, 0), "{}", ran.json["total"]["errors"]);
    assert!(ran.number("total.requests").is_some_and(|n| n > 300.0));
}

#[test]
fn a_flipped_byte_is_wrong_bytes() {
    is_caught(Fault::FlippedByte, "plain.pg", "wrong_bytes");
}

#[test]
fn a_body_cut_short_is_a_truncated_body() {
    is_caught(Fault::TruncatedBody, "plain.pg", "truncated_body");
    is_allowed(Fault::TruncatedBody, "plain.pg", "truncated_body");
}

#[test]
fn a_post_that_is_sent_on_twice_is_a_repeated_post() {
    is_caught(Fault::RepeatedPost, "posts.pg", "repeated_post");
}

#[test]
fn what_a_cache_keeps_after_a_post_is_counted_and_no_error() {
    let (injected, ran) = through(Fault::KeptAfterPost, "posts.pg", &[]);
    let total = &ran.json["total"];
    let kept = total["special"]["kept_after_post"].as_u64().unwrap_or(0);
    // What was stored while another request was under way since before is left out.
    assert!(kept > 20 && kept <= injected, "{kept} of {injected}: {total}");
    assert_eq!(ran.errors_total(), 0, "{}", total["errors"]);
    assert!(
        ran.json["verdict"].to_string().contains("before a POST or PUT to the same URL"),
        "{}",
        ran.json["verdict"]
    );
    let file = workload("posts.pg");
    let right = run(&[file.to_str().expect("UTF-8"), "--proxy", "builtin"]);
    assert!(right.number("total.outcomes.hit").is_some_and(|hits| hits > 20.0), "{}", right.json["total"]);
    assert_eq!(right.number("total.special.kept_after_post"), Some(0.0), "{}", right.json["verdict"]);
}

#[test]
fn what_a_proxy_tells_the_caches_of_its_clients_is_counted_and_no_error() {
    for field in [
        "Cache-Control: no-store",
        "Expires: Fri, 01 Jan 2100 00:00:00 GMT",
        "Last-Modified: Thu, 01 Jan 1970 00:00:00 GMT",
    ] {
        let (_, ran) = through(Fault::ReplacedField(field), "plain.pg", &[]);
        let total = &ran.json["total"];
        assert_eq!((ran.errors_total(), ran.code), (0, 0), "{field}: {total}");
        let (name, _) = field.split_once(':').expect("a field has a colon");
        let changed = total["changed_fields"].as_object().expect("fields have changed");
        let (compared, found) = (total["special"]["compared_fields"].as_u64(), changed[name].as_u64());
        assert!(changed.len() == 1 && found > Some(30) && found <= compared, "{field}: {total}");
        let verdict = ran.json["verdict"].to_string();
        assert!(verdict.contains(&format!("{name} in ")), "{verdict}");
    }
    let (_, ran) = through(Fault::None, "plain.pg", &[]);
    assert!(ran.json["total"]["special"]["compared_fields"].as_u64() > Some(30), "{}", ran.json["total"]);
    assert_eq!(ran.json["total"].get("changed_fields"), None);
}

#[test]
fn faults_that_origins_could_not_inject_are_counted_and_no_error() {
    for (fault, is_omitted) in [(Fault::Anonymous, true), (Fault::None, false)] {
        let (_, ran) = through(fault, "resets.pg", &[]);
        let omitted = ran.json["total"]["special"]["faults_omitted"].as_u64().unwrap_or(0);
        assert_eq!((omitted > 20, omitted > 0), (is_omitted, is_omitted), "{fault:?}: {}", ran.json["total"]);
        assert_eq!(ran.errors_total(), 0, "{}", ran.json["total"]["errors"]);
        let verdict = ran.json["verdict"].to_string();
        assert_eq!(verdict.contains("did not inject"), is_omitted, "{verdict}");
    }
}

#[test]
fn another_object_is_a_wrong_object() {
    is_caught(Fault::SwappedObject, "plain.pg", "wrong_object");
}

#[test]
fn a_proxy_that_mixes_up_origins_is_told_before_the_run_and_one_that_passes_host_on_is_not() {
    let through = |fault| {
        let origins = [own_address(9000), own_address(9000)];
        let forwarder = Faulty::start(&own_address(8080).to_string(), origins[0], fault);
        let directory = tempfile::tempdir().expect("the temp directory is writable");
        let mut program = Command::new(env!("CARGO_BIN_EXE_assay"));
        program
            .args(["run", "demo", "--duration", "1s", "--no-live", "--run-dir"])
            .arg(directory.path().join("run"));
        program.args(["--proxy", &forwarder.address.to_string()]);
        program.args(origins.iter().flat_map(|origin| ["--origin-listen".to_owned(), origin.to_string()]));
        let output = program.output().expect("the program runs");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned(), origins)
    };
    let (code, said, _) = through(Fault::None);
    // So short a run may leave open whether pages would have come.
    assert!(matches!(code, Some(0 | 96)), "{said}");
    let (code, said, [first, second]) = through(Fault::OneOrigin);
    assert_eq!(code, Some(1), "{said}");
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "origins are mixed up",
        &format!("the origin at {first}"),
        &format!("to {second}"),
        "ProxyPreserveHost",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn nothing_is_good_about_a_run_that_lost_most_of_its_requests() {
    let (injected, ran) = through(Fault::LostMost, "plain.pg", &["--require", "dhr >= 0"]);
    assert!(injected > 100, "the forwarder lost only {injected} responses");
    assert_eq!(ran.code, UNMET, "{}", ran.json["headline"]);
    for about in ["speed", "savings", "correctness", "requirements"] {
        let findings = ran.json["verdict"].as_array().expect("verdict is a list");
        let found = findings.iter().find(|finding| finding["about"] == about).expect(about);
        assert_ne!(found["mood"], "good", "{found}");
        let text = found["text"].as_str().expect("text");
        let says_how_many = text.contains("requests due (") || text.contains("ended in an error");
        assert!(says_how_many && !text.contains("as good as an infinite cache"), "{text}");
    }
}

#[test]
fn an_expired_object_from_the_store_is_stale() {
    is_caught(Fault::StaleAfterExpiry, "expiring.pg", "stale");
}

#[test]
fn an_expired_object_that_never_changes_is_stale_where_no_origin_has_confirmed_it() {
    is_caught(Fault::StaleAfterExpiry, "unchanging.pg", "stale");
}

#[test]
fn a_reload_from_the_store_is_counted_and_fails_a_run_that_requires_none() {
    for (flags, code) in [(&[][..], 0), (&["--require", "errors(hit_on_reload) == 0"], UNMET)] {
        let (injected, ran) = through(Fault::HitOnReload, "reloads.pg", flags);
        assert!(injected > 20, "the forwarder served only {injected} reloads from its store");
        let total = &ran.json["total"];
        assert_eq!(ran.number("total.special.reloads_from_store"), Some(injected as f64), "{total}");
        assert_eq!((ran.errors_total(), ran.code), (0, code), "{}", ran.json["requirements"]);
    }
}

#[test]
fn an_uncachable_object_from_the_store_is_a_hit_on_uncachable() {
    is_caught(Fault::HitOnUncachable, "uncachable.pg", "hit_on_uncachable");
    is_allowed(Fault::HitOnUncachable, "uncachable.pg", "hit_on_uncachable");
}
