//! With a cache larger than the working set, the built-in proxy hits what an ideal cache would, and the ideal cache what the
//! stream offers: some cells of the matrix that `tests/commands` walks through without waiting, run through the binary.

use serde_json::Value;

use crate::cells::{Cell, MIXED, PRIVATE, PUBLIC, tolerance};
use crate::helpers::all_sent;
use crate::support::Assay;

/// The figures of the whole of a run that went well. A busy machine changes what is known of times, and no hit ratio, unless it
/// is so busy that requests are never sent: these are in what was offered, and not in what is ideal.
fn run(cell: &Cell, text: &str) -> Value {
    all_sent(0.99, || {
        let assay = Assay::new();
        let workload = assay.file("cell.pg", text);
        let said =
            assay.run(&["run", workload, "--memory", "256MB", "--run-dir", "r", "--no-report", "--json"]);
        assert!(said.went_well(), "{cell:?}: {said:?}");
        let document: Value = serde_json::from_str(&said.stdout).expect("one JSON document");
        document["total"].clone()
    })
}

fn dhr(total: &Value, which: &str) -> f64 {
    total["dhr"][which].as_f64().unwrap_or_else(|| panic!("no {which} in {total:#}"))
}

#[test]
fn runs_measure_what_an_ideal_cache_hits_and_the_stream_offers() {
    for cell in [
        Cell { interests: PUBLIC, limited: true, origins: 1, robots: 1000 },
        Cell { interests: PRIVATE, limited: false, origins: 1, robots: 1 },
        Cell { interests: MIXED, limited: true, origins: 30, robots: 1000 },
        Cell { interests: MIXED, limited: false, origins: 30, robots: 1 },
    ] {
        let total = run(&cell, &cell.workload(8));
        let all = total["completed"].as_u64().expect("a count");
        let (offered, ideal, measured) =
            (dhr(&total, "offered"), dhr(&total, "ideal"), dhr(&total, "measured"));
        eprintln!("{cell:?}: offered {offered:.4}, ideal {ideal:.4}, measured {measured:.4} of {all}");
        assert_eq!(total["errors"]["total"], 0, "{cell:?}: {:#}", total["errors"]);
        let tolerance = tolerance(ideal, all);
        assert!((measured - ideal).abs() <= tolerance, "{cell:?}: measured {measured}, ideal {ideal}");
        assert!((ideal - offered).abs() <= tolerance, "{cell:?}: ideal {ideal}, offered {offered}");
    }
}

#[test]
fn parts_heads_reloads_and_conditions_are_in_the_ideal_too() {
    let cell = Cell { interests: MIXED, limited: true, origins: 2, robots: 100 };
    let text = cell
        .workload(8)
        .replace("cachable = 85%;", "cachable = 85%; obj_life_cycle = olc;")
        .replace("recurrence = 60%;", "recurrence = 60%; req_types = [ \"Range\": 25%, \"Ims304\": 8%, \"Ims200\": 4%, \"Reload\": 4%, \"Basic\" ]; ranges = [ half, tail ]; req_methods = [ \"HEAD\": 5%, \"POST\": 2%, \"GET\" ]; post_contents = [ cntAny ];");
    let lives = r#"
        ObjLifeCycle olc = { length = const(1year); with_lmt = 100%; expires = [ now + const(1hour) ]; };
        SingleRange half = { first_byte_pos_relative = 0.5; };
        SingleRange tail = { suffix_length_absolute = 100Byte; };
    "#;
    let total = run(&cell, &format!("{lives}{text}"));
    let all = total["completed"].as_u64().expect("a count");
    let (ideal, measured) = (dhr(&total, "ideal"), dhr(&total, "measured"));
    eprintln!("everything: offered {:.4}, ideal {ideal:.4}, measured {measured:.4}", dhr(&total, "offered"));
    assert_eq!(total["errors"]["total"], 0, "{:#}", total["errors"]);
    assert!(total["by_status"]["206"].as_u64() > Some(100), "{:#}", total["by_status"]);
    let tolerance = tolerance(ideal, all);
    assert!((measured - ideal).abs() <= tolerance, "measured {measured}, ideal {ideal} ± {tolerance}");
}
