//! A slow target changes what is late and what is left over, never what is due.

use serde_json::Value;

use crate::faulty::{Fault, Faulty};
use crate::run_command::{Ran, at, own_address, run, workload};

fn through(fault: Fault) -> Ran {
    let origin = own_address(9000);
    let forwarder = Faulty::start(&own_address(8080).to_string(), origin, fault);
    let file = workload("overload.pg");
    let proxy = forwarder.address.to_string();
    run(&[file.to_str().expect("UTF-8"), "--proxy", &proxy, "--origin-listen", &origin.to_string()])
}

fn phase<'a>(ran: &'a Ran, name: &str) -> &'a Value {
    ran.phases().iter().find(|p| p["name"] == name).expect("the workload has this phase")
}

#[test]
fn what_is_due_does_not_depend_on_the_target() {
    let quick = through(Fault::None);
    let slow = through(Fault::OneAtATime);
    assert_eq!(quick.json["stream_digest"], slow.json["stream_digest"]);
    for (a, b) in quick.phases().iter().zip(slow.phases()) {
        assert_eq!(a["due_digest"], b["due_digest"], "phase {}", a["name"]);
        assert_eq!(at(a, "dhr.offered"), at(b, "dhr.offered"), "phase {}", a["name"]);
    }

    // It is said where requests wait.
    assert_eq!(slow.code, 99, "{}", slow.json["headline"]);
    let found = slow.json["verdict"].to_string();
    assert!(found.contains("on average; origins took 30"), "{found}");

    // 300 ms at the origin, one request at a time: three a second of the sixty that are due.
    let busy = phase(&slow, "busy");
    let due = at(busy, "rate.offered").as_f64().expect("a rate");
    let done = at(busy, "rate.measured").as_f64().expect("a rate");
    assert!(done < due / 4.0, "offered {due}/s, measured {done}/s");
    assert!(busy["unsent"].as_u64().expect("a count") > 50, "{busy}");
    let service = at(busy, "service_time_ms.all.p50").as_f64().expect("responses came");
    assert!(service > 300.0, "{service} ms");

    // What was never sent is in the percentiles that people read, as long as it had waited.
    let (all, completed) = (at(busy, "response_time_ms.all"), at(busy, "response_time_ms.completed"));
    let gave_up = busy["errors"]["by_kind"]["timed_out"].as_u64().unwrap_or(0);
    let without_end = busy["unsent"].as_u64().expect("a count") + gave_up;
    assert_eq!(all["count"].as_u64(), completed["count"].as_u64().map(|count| count + without_end));
    for open in ["mean", "p90", "p99", "max"] {
        let names = all["at_least"].as_array().expect("most requests have no end");
        assert!(names.iter().any(|name| name == open), "{open} is no lower bound in {all}");
    }
    assert!(completed["at_least"].is_null(), "{completed}");

    // Nothing of it leaks into the next phase, which requests little: all of it is sent.
    let calm = phase(&slow, "calm");
    assert_eq!(calm["unsent"], 0, "{calm}");

    // Waiting behind the target is the target's time: Assay's own lateness stays out of it.
    let waited = at(busy, "response_time_ms.all.p90").as_f64().expect("responses came");
    let late = at(busy, "lateness_us.p50").as_f64().expect("requests were sent") / 1000.0;
    assert!(late < waited / 10.0, "late by {late} ms, waited {waited} ms");
}
