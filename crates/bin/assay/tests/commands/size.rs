//! `assay size` through the real binary: curves from logs and traces, in every form, and what it says of bad input.

use serde_json::Value;

use crate::support::{Assay, read};

/// A log in Combined: `/0` to `/9` in turn, five times, each of 100 bytes times its number and 100 more; and a POST.
fn combined() -> String {
    let line = |number: u32, method: &str| {
        let path = number % 10;
        format!(
            "192.0.2.7 - - [10/Oct/2025:13:55:{number:02} +0000] \"{method} /{path} HTTP/1.1\" 200 {} \"-\" \"agent\"\n",
            (path + 1) * 100
        )
    };
    (0..50).map(|number| line(number, "GET")).chain([line(50, "POST")]).collect()
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("one JSON document")
}

/// Hits of a policy by size.
fn hits(document: &Value, policy: &str) -> Vec<(u64, u64)> {
    let curves = document["curves"].as_array().expect("curves");
    let curve = curves.iter().find(|curve| curve["policy"] == policy).expect(policy);
    let points = curve["points"].as_array().expect("points").iter();
    points.map(|point| (point["size_bytes"].as_u64().unwrap(), point["hits"].as_u64().unwrap())).collect()
}

#[test]
fn a_loop_hits_nothing_in_lru_until_all_of_it_fits() {
    let assay = Assay::new();
    let log = assay.file("access.log", &combined());
    let arguments = ["size", log, "--policy", "lru,belady", "--sizes", "5400,5KB,1MB,5500", "--json"];
    let document = json(&assay.run(&arguments).exits(0).stdout);
    assert_eq!(document["schema"], "assay-size/1");
    assert_eq!(hits(&document, "lru"), [(5120, 0), (5400, 0), (5500, 40), (1 << 20, 40)]);
    assert!(hits(&document, "belady")[0].1 > 20);
    let point = &document["curves"][0]["points"][2];
    assert_eq!([&point["requests"], &point["misses"], &point["hit_bytes"]], [51, 11, 22_000]);
    assert_eq!([&document["input"]["uncachable_requests"], &document["infinite"]["hits"]], [1, 40]);
}

#[test]
fn every_form_has_the_same_figures_and_the_first_sentence_names_a_size() {
    let assay = Assay::new();
    let log = assay.file("access.log", &combined());
    let arguments = ["size", log, "--policy", "lru,lru", "--csv", "size.csv", "--html", "size.html"];
    let said = assay.run(&arguments).exits(0);
    assert!(said.stdout.starts_with("6 KB is enough for LRU: 78.4 % of the requests"), "{}", said.stdout);
    let csv = read(&assay.path("size.csv"));
    let last = csv.lines().last().expect("lines");
    assert!(
        csv.starts_with("policy,size_bytes,requests,hits,misses,bytes,hit_bytes,dhr,bhr,validated,collapsible,low,high,bhr_low,bhr_high\n"),
        "{csv}"
    );
    assert!(last.starts_with("lru,6144,51,40,11,"), "{last}");
    let page = read(&assay.path("size.html"));
    assert!(page.contains("How large the cache must be") && page.contains("is enough for LRU"));
}

#[test]
fn traces_give_what_the_same_requests_give_as_a_log() {
    let assay = Assay::new();
    let (mut csv, mut oracle) = ("time,id,size\n".to_owned(), Vec::new());
    for number in 0..50u32 {
        let (object, bytes) = (u64::from(number % 10), (number % 10 + 1) * 100);
        csv.push_str(&format!("{number},{object},{bytes}\n"));
        oracle.extend(number.to_le_bytes());
        oracle.extend(object.to_le_bytes());
        oracle.extend(bytes.to_le_bytes());
        oracle.extend(0i64.to_le_bytes());
    }
    oracle.extend([1, 2, 3]);
    assay.file("trace.csv", &csv);
    assay.file("ids.csv", "id\na\nb\na\n");
    std::fs::write(assay.path("trace.oracleGeneral"), &oracle).expect("a file");
    let simulate = |file: &str, sizes: &str| {
        json(&assay.run(&["size", file, "--sizes", sizes, "--json"]).exits(0).stdout)
    };
    let (from_csv, from_oracle) =
        (simulate("trace.csv", "2KB,5500"), simulate("trace.oracleGeneral", "2KB,5500"));
    assert_eq!(from_csv["curves"], from_oracle["curves"]);
    assert_eq!(hits(&from_csv, "lru"), [(2048, 0), (5500, 40)]);
    let notes = from_oracle["notes"].to_string();
    assert!(notes.contains("in the middle of a record (3 of 24 bytes)"), "{notes}");
    let without_sizes = simulate("ids.csv", "1,2");
    assert_eq!(
        (&without_sizes["input"]["unit"], hits(&without_sizes, "lru")),
        (&"objects".into(), vec![(1, 0), (2, 1)])
    );
    assert!(without_sizes["infinite"]["bhr"].is_null());
}

#[test]
fn published_traces_are_known_by_their_first_line_and_say_lifetimes_parts_and_response_times() {
    let assay = Assay::new();
    let simulate = |name: &str, more: &[&str]| {
        let arguments = [&["size", name, "--policy", "lru", "--sizes", "1MB", "--json"], more].concat();
        json(&assay.run(&arguments).exits(0).stdout)
    };
    // A page each second, whose response begins after 2.5 seconds.
    let rows = (0..10).map(|second| format!("{second}\t-889152392\t500\t2.5\n"));
    let head = "relative_unix\thashed_host_path_query\tresponse_size\ttime_firstbyte\n";
    assay.file("cache-t-00", &(head.to_owned() + &rows.collect::<String>()));
    let at_once = simulate("cache-t-00", &[]);
    assert_eq!(
        [&at_once["input"]["format"], &at_once["infinite"]["collapsible"]],
        [&Value::from("csv"), &Value::from(0)]
    );
    let logged = simulate("cache-t-00", &["--response-time", "logged"]);
    assert_eq!([&logged["infinite"]["hits"], &logged["infinite"]["collapsible"]], [9, 2]);
    let said = logged["advice"].to_string();
    assert!(said.contains("2 requests (20.0 %) come while the response"), "{said}");
    // Parts of an object that is fresh for a minute, every half a minute.
    let rows = (0..5).map(|half| format!("{},k,1,1000,{},300,0,9,60,0.2,1,0,7,-,2\n", half * 30, 10 + half));
    let head = "timestamp,cacheKey,OpType,objectSize,responseSize,responseHeaderSize,rangeStart,rangeEnd,TTL,SamplingRate,cache_hit,\
                item_value,RequestHandler,cdn_content_type_id,vip_type\n";
    assay.file("reag", &(head.to_owned() + &rows.collect::<String>()));
    let found = simulate("reag", &[]);
    let figures = &found["infinite"];
    assert_eq!(
        [&figures["hits"], &figures["validated"], &figures["bytes"], &figures["hit_bytes"]],
        [2, 2, 60, 24]
    );
    assert_eq!(found["input"]["footprint_bytes"], 1000);
    assay.file("plain.csv", "id,size\n1,2\n");
    assay
        .run(&["size", "plain.csv", "--response-time", "logged"])
        .exits(2)
        .complains("like --response-time 100ms");
    assay.run(&["size", "demo", "--response-time", "logged"]).exits(2).complains("has no log");
    assay.run(&["size", "plain.csv", "--response-time", "soon"]).exits(2);
}

#[test]
fn requests_of_a_log_act_as_on_the_proxy_that_is_named_and_can_be_collapsed() {
    let assay = Assay::new();
    let line = |second: u32, method: &str, status: u32| {
        format!(
            "192.0.2.7 - - [10/Oct/2025:13:55:{second:02} +0000] \"{method} /a HTTP/1.1\" {status} 500 \"-\" \"agent\"\n"
        )
    };
    let text: String = [
        (0, "GET", 200),
        (1, "GET", 200),
        (2, "HEAD", 200),
        (3, "GET", 206),
        (9, "POST", 200),
        (10, "GET", 200),
    ]
    .map(|(second, method, status)| line(second, method, status))
    .concat();
    let log = assay.file("access.log", &text);
    let simulate = |more: &[&str]| {
        let arguments = [&["size", log, "--policy", "lru", "--sizes", "1MB", "--json"], more].concat();
        json(&assay.run(&arguments).exits(0).stdout)["infinite"].clone()
    };
    assert_eq!(simulate(&[])["hits"], 3, "HEAD and POST are misses, and change nothing");
    // HEAD is served too, and a POST drops the object.
    assert_eq!(simulate(&["--as", "builtin"])["hits"], 3);
    assert_eq!(simulate(&["--as", "nginx"])["hits"], 4, "nginx drops nothing for a POST");
    let slow = simulate(&["--as", "nginx", "--response-time", "2500ms"]);
    assert_eq!([&slow["collapsible"], &slow["hits"]], [2, 2], "nginx does not collapse requests");
    let slow = simulate(&["--as", "varnish", "--response-time", "2500ms"]);
    assert_eq!(slow["collapsible"], 2);
    assay.run(&["size", log, "--response-time", "logged"]).exits(2).complains("cannot take response times");
}

#[test]
fn requests_of_the_warm_up_are_not_counted() {
    let assay = Assay::new();
    let log = assay.file("access.log", &combined());
    let arguments = ["size", log, "--warm-up", "20%", "--sizes", "1MB", "--json"];
    let document = json(&assay.run(&arguments).exits(0).stdout);
    assert_eq!(document["input"]["warm_up_requests"], 10);
    assert_eq!([&document["infinite"]["requests"], &document["infinite"]["hits"]], [41, 40]);
}

/// A trace of 40,000 requests for some thousand objects, popular ones more often.
fn skewed() -> String {
    let mut state = 1u64;
    let mut lines = "time,id,size\n".to_owned();
    for number in 0..40_000u64 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let x = (state >> 40) as f64 / (1u64 << 24) as f64;
        let object = (x * x * x * 12_000.0) as u64;
        lines.push_str(&format!("{number},{object},{}\n", 1000 + object % 7 * 500));
    }
    lines
}

#[test]
fn a_sample_has_a_band_in_every_form_and_the_whole_has_an_error_from_time() {
    let assay = Assay::new();
    assay.file("trace.csv", &skewed());
    let simulate = |more: &[&str]| {
        let arguments =
            [&["size", "trace.csv", "--policy", "lru,sieve", "--sizes", "2MB,4MB,8MB", "--json"], more]
                .concat();
        json(&assay.run(&arguments).exits(0).stdout)
    };
    let (all, part) =
        (simulate(&[]), simulate(&["--sample", "20%", "--csv", "part.csv", "--html", "part.html"]));
    assert_eq!([&all["error_from"], &part["error_from"]], ["time", "sample"]);
    assert!(all["sample"].is_null() && all["curves"][0]["points"][0]["low"].is_null());
    assert_eq!(part["input"]["requests"], 40_000);
    let number = |value: &Value| value.as_f64().expect("a number");
    for (all, part) in all["curves"].as_array().unwrap().iter().zip(part["curves"].as_array().unwrap()) {
        for (truth, point) in all["points"].as_array().unwrap().iter().zip(part["points"].as_array().unwrap())
        {
            let [low, dhr, high] = ["low", "dhr", "high"].map(|name| number(&point[name]));
            assert!(low < dhr && dhr < high && high - low < 0.2, "{point}");
            assert!((low..high).contains(&number(&truth["dhr"])), "{truth} {point}");
            assert_eq!(point["requests"], 40_000);
        }
    }
    let other = simulate(&["--sample", "20%", "--seed", "2"]);
    assert_ne!(other["curves"], part["curves"], "another seed draws another sample");
    for enough in part["curves"][0]["enough"].as_array().unwrap() {
        let Some(size) = enough["size_bytes"].as_u64() else { continue };
        assert!(number(&enough["below"]["low"]) <= number(&enough["below"]["points"]), "{enough}");
        assert!(enough["sure_size_bytes"].as_u64().is_none_or(|sure| sure >= size), "{enough}");
    }
    let csv = read(&assay.path("part.csv"));
    assert!(csv.lines().nth(1).expect("a line").split(',').skip(10).all(|end| !end.is_empty()), "{csv}");
    let page = read(&assay.path("part.html"));
    assert!(page.contains("The band around a line") && page.contains("\"low\""), "bands are drawn");
    let said = assay.run(&["size", "trace.csv", "--sample", "3000"]).exits(0).stdout;
    assert!(said.contains("Simulated was a sample of") && said.contains("infinite cache ["), "{said}");
    assay
        .run(&["size", "trace.csv", "--sample", "20%", "--sizes", "1KB"])
        .exits(2)
        .complains("says nothing of caches below");
    let few = simulate(&["--sample", "20%", "--sizes", "1KB,8MB"]);
    assert!(few["notes"].to_string().contains("were left out: 1 KB"), "{}", few["notes"]);
}

#[test]
fn hits_are_divided_by_host_and_class_in_every_form() {
    let assay = Assay::new();
    // Squid's log: one host whose objects are requested again and again, one whose objects are requested once.
    let line = |number: u32| {
        let (class, url) = match number % 2 {
            0 => ("TCP_HIT", format!("http://Again.example/{}", number % 10)),
            _ => ("TCP_MISS", format!("http://once.example/{number}")),
        };
        format!(
            "{}.000 5 192.0.2.1 {class}/200 1000 GET {url} - HIER_NONE/- image/png\n",
            1_700_000_000 + number
        )
    };
    let log = assay.file("access.log", &(0..200).map(line).collect::<String>());
    let arguments = [
        "size",
        log,
        "--by",
        "host",
        "--policy",
        "lru,belady",
        "--sizes",
        "20KB,1MB",
        "--csv",
        "by.csv",
        "--html",
        "by.html",
    ];
    let document = json(&assay.run(&[&arguments[..], &["--json"]].concat()).exits(0).stdout);
    assert_eq!(document["by"], "host");
    let by = document["curves"][0]["points"][1]["by"].as_array().expect("hosts");
    let figures: Vec<_> = by
        .iter()
        .map(|one| {
            (one["name"].as_str().unwrap(), one["requests"].as_u64().unwrap(), one["hits"].as_u64().unwrap())
        })
        .collect();
    assert_eq!(figures, [("again.example", 100, 95), ("once.example", 100, 0)]);
    assert_eq!(document["infinite_by"][0]["hits"], 95);
    let said = assay.run(&arguments).exits(0).stdout;
    assert!(said.contains("are of host once.example, which has 50.0 % of the requests"), "{said}");
    assert!(said.contains("by host") && said.contains("again.example"), "{said}");
    let csv = read(&assay.path("by.csv"));
    assert!(csv.lines().next().expect("a head").ends_with(",bhr_high,host"), "{csv}");
    assert!(csv.contains("lru,1048576,100,95,5,") && csv.contains(",again.example\n"), "{csv}");
    assert!(read(&assay.path("by.html")).contains("once.example"));
    let classes = json(&assay.run(&["size", log, "--by", "class", "--json"]).exits(0).stdout);
    assert_eq!(classes["infinite_by"][1]["name"], "miss", "{}", classes["infinite_by"]);
    let types = json(&assay.run(&["size", log, "--by", "type", "--json"]).exits(0).stdout);
    assert_eq!(types["infinite_by"][0]["name"], "image/png");
    let of_workload = json(
        &assay
            .run(&["size", "demo", "--by", "type", "--policy", "lru", "--sizes", "4MB", "--json"])
            .exits(0)
            .stdout,
    );
    assert!(of_workload["infinite_by"].as_array().expect("types").len() > 1, "{of_workload}");
    assay.run(&["size", "demo", "--by", "class"]).exits(2).complains("what a log says became of them");
    assay.file("trace.csv", "id,size\n1,2\n");
    assay.run(&["size", "trace.csv", "--by", "host"]).exits(2).complains("--by could be for");
    assay.run(&["size", log, "--by", "hosts"]).exits(2).complains("write host, type or class");
}

/// Two caches for the robots of the demo, with what each says of the other.
fn pair(first: &str, second: &str) -> String {
    format!(
        "proxy = \"builtin\"\nmemory = \"8MB\"\n[[cache]]\nname = \"a\"\n{first}\n[[cache]]\nname = \"b\"\n{second}\n"
    )
}

#[test]
fn caches_that_work_together_are_simulated_with_what_that_gains() {
    let assay = Assay::new();
    assay.file("apart.toml", &pair("robots = 1", "robots = 1"));
    assay.file("siblings.toml", &pair("siblings = [\"b\"]", "siblings = [\"a\"]"));
    let simulate = |more: &[&str]| {
        let arguments = [&["size", "demo", "--policy", "lru", "--sizes", "16MB", "--json"], more].concat();
        json(&assay.run(&arguments).exits(0).stdout)["together"].clone()
    };
    let (apart, siblings) =
        (simulate(&["--topology", "apart.toml"]), simulate(&["--topology", "siblings.toml"]));
    let dhr = |of: &Value| of["dhr"].as_f64().expect("a ratio");
    assert_eq!(apart["figures"], apart["apart"]);
    assert_eq!(siblings["apart"], apart["figures"], "the same requests, the same caches");
    let gained = siblings["gained"]["points"].as_f64().expect("points");
    assert!(gained > 1.0 && siblings["gained"]["low"].as_f64() > Some(0.0), "{siblings}");
    assert!(((dhr(&siblings["figures"]) - dhr(&siblings["apart"])) * 100.0 - gained).abs() < 1e-9);
    assert!(dhr(&siblings["as_one"]) > dhr(&siblings["figures"]));
    let layers = simulate(&["--layers", "2MB,32MB", "--edges", "3", "--html", "layers.html"]);
    let caches = layers["caches"].as_array().expect("caches");
    let names: Vec<&str> = caches.iter().map(|cache| cache["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["edge 1", "edge 2", "edge 3", "layer 2"]);
    assert!(caches[3]["from_caches_hits"].as_u64() > Some(0) && caches[3]["requests"] == 0);
    assert!(read(&assay.path("layers.html")).contains("Caches that work together"));
    let by_policy = |policy: &str| {
        let arguments =
            ["size", "demo", "--policy", policy, "--sizes", "16MB", "--layers", "4MB,8MB", "--json"];
        json(&assay.run(&arguments).exits(0).stdout)["together"].clone()
    };
    let (fifo, gdsf) = (by_policy("belady,fifo"), by_policy("gdsf,lru"));
    assert_eq!([&fifo["policy"], &gdsf["policy"]], ["fifo", "gdsf"]);
    assert!(dhr(&gdsf["figures"]) > dhr(&fifo["figures"]), "{fifo} {gdsf}");
    let sample = simulate(&["--topology", "siblings.toml", "--sample", "50%"]);
    let [low, high] = ["low", "high"].map(|end| sample["gained"][end].as_f64().expect("an interval"));
    assert!((low..=high).contains(&gained), "{gained} {sample}");
    assert_eq!(sample["figures"]["requests"], siblings["figures"]["requests"]);
    let log = assay.file("access.log", &combined());
    let said = assay.run(&["size", log, "--layers", "2KB,8KB", "--policy", "lru"]).exits(0).stdout;
    assert!(said.contains("hits by cache") && said.contains("layer 2"), "{said}");
    assay.run(&["size", log, "--topology", "siblings.toml"]).exits(0);
    assay.file("named.toml", &pair("robots = [\"D1\"]", "robots = 1"));
    assay.run(&["size", log, "--topology", "named.toml"]).exits(2).complains("an access log has none");
    assay.file("trace.csv", "id,size\n1,2\n");
    assay
        .run(&["size", "trace.csv", "--layers", "1KB,2KB", "--edges", "2"])
        .exits(2)
        .complains("a trace has no clients");
    assay.run(&["size", "trace.csv", "--layers", "1KB,2KB"]).exits(0);
    for flag in ["--layers", "--sizes"] {
        assay.run(&["size", log, flag, "0B"]).exits(2).complains("a cache of nothing");
        assay.run(&["size", log, flag, "5Q"]).exits(2).complains("5Q");
    }
    // Without sizes, a number is one of objects, of layers too.
    assay.file("uni.csv", "id\n1\n2\n1\n3\n1\n");
    let said = assay.run(&["size", "uni.csv", "--sizes", "2,20", "--layers", "2,20"]).exits(0).stdout;
    let (layers, by_size) = said.split_once("hits by size").expect("two tables");
    for size in ["2 objects", "20 objects"] {
        assert!(layers.contains(size) && by_size.contains(size), "{size} is not in both tables: {said}");
    }
}

#[test]
fn bad_input_gets_one_message_that_says_what_to_do() {
    let assay = Assay::new();
    assay.file("access.log", &combined());
    assay.file("other.csv", "when,what\n1,2\n");
    assay.file("empty.csv", "id,size\n");
    assay.file("bad.csv", "id,size\n1,x\n");
    assay.file("trace.csv", "id,size\n1,2\n");
    for (arguments, expected) in [
        (&["size", "access.log", "--policy", "s3fifo"][..], "did you mean `s3-fifo`?"),
        (&["size", "access.log", "--sizes", "0"], "a cache of nothing holds nothing"),
        (&["size", "access.log", "--sizes", "1QB"], "1QB"),
        (&["size", "access.log", "--warm-up", "100%"], "is not a share of the requests"),
        (&["size", "access.log", "--sample", "2"], "a sample of"),
        (&["size", "access.log", "--sample", "0%"], "is not a sample"),
        (&["size", "access.log", "--sample", "much"], "is not a sample"),
        (&["size", "other.csv"], "none of its columns (when,what) stands for the object"),
        (&["size", "empty.csv"], "there is no request in empty.csv"),
        (&["size", "bad.csv"], "lines or records that could not be read: 1"),
        (&["size", "trace.csv", "access.log"], "one is a trace, the other an access log"),
        (&["size", "nowhere.log"], "no file is called nowhere.log"),
        (&["size", "access.log", "--html", "."], "is a directory"),
    ] {
        assay.run(arguments).exits(2).complains(expected);
    }
}

#[test]
fn a_trace_without_names_is_refused_with_what_would_read_it_and_read_with_that() {
    let assay = Assay::new();
    assay.file("trace.txt", "1 a 300\n2 b 900\n3 a 300\n64 b 900\n");
    let said = assay.run(&["size", "trace.txt"]).exits(2).stderr.clone();
    assert!(said.contains("`1 a 300`") && said.contains("--columns time,object,size"), "{said}");
    let arguments = [
        "size",
        "trace.txt",
        "--columns",
        "time,object,size",
        "--policy",
        "lru",
        "--sizes",
        "1KB,2KB",
        "--json",
    ];
    let document = json(&assay.run(&arguments).exits(0).stdout);
    assert_eq!(hits(&document, "lru"), [(1024, 0), (2048, 2)]);
    assert_eq!(
        [&document["input"]["lasts_s"], &document["input"]["unit"]],
        [&Value::from(63), &Value::from("bytes")]
    );
    for (arguments, expected) in [
        (&["size", "trace.txt", "--columns", "time,objet,size"][..], "did you mean `object`?"),
        (&["size", "trace.txt", "--columns", "time,size,-"], "`object`"),
        (&["size", "trace.txt", "--columns", "time,object"], "names 2 columns, and lines have 3"),
        (
            &["size", "trace.txt", "--columns", "time,object,size", "-f", "oracleGeneral"],
            "leave one of them out",
        ),
        (&["size", "demo", "--columns", "object"], "--columns is for traces"),
    ] {
        assay.run(arguments).exits(2).complains(expected);
    }
}

#[test]
fn sizes_of_caches_with_a_unit_are_refused_where_objects_have_none() {
    let assay = Assay::new();
    assay.file("ids.csv", "id,weight\na,1\nb,2\n");
    for flag in ["--sizes", "--layers", "--admission"] {
        let said = assay.run(&["size", "ids.csv", flag, "1KB"]).exits(2).stderr.clone();
        assert!(said.contains("number of objects") && said.contains("--columns"), "{flag}: {said}");
    }
    std::fs::write(assay.path("trace.bin"), [5, 0, 0, 0, 7, 0]).expect("a file");
    assay.run(&["size", "trace.bin"]).exits(2).complains("--format oracleGeneral");
    let said = assay.run(&["size", "ids.csv", "--sizes", "1"]).exits(0).stdout.clone();
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains("not used: `weight`") && said.contains("None of the columns is known as one of sizes"),
        "{said}"
    );
}

#[test]
fn a_workload_is_simulated_with_the_lifetimes_of_its_objects() {
    let assay = Assay::new();
    let simulate = |more: &[&str]| {
        let arguments = [&["size", "demo", "--policy", "lru", "--sizes", "4MB,1GB", "--json"], more].concat();
        json(&assay.run(&arguments).exits(0).stdout)
    };
    let (document, again) = (simulate(&[]), simulate(&["--seed", "1"]));
    assert_eq!(document, again, "the same requests each time");
    assert_eq!(document["input"]["format"], "PGL workload");
    let infinite = &document["infinite"];
    assert!(infinite["validated"].as_u64() > Some(0), "objects of the demo expire: {infinite}");
    assert!(
        document["input"]["uncounted_requests"].as_u64() > Some(0),
        "it has conditional requests and reloads"
    );
    let points = &document["curves"][0]["points"];
    assert_eq!(points[1]["hits"], infinite["hits"]);
    assert!(points[0]["hits"].as_u64() < infinite["hits"].as_u64());
    let part = simulate(&["--phase", "top1"]);
    assert!(part["infinite"]["requests"].as_u64() < infinite["requests"].as_u64());
    assert!(simulate(&["--seed", "2"])["infinite"] != *infinite);
}

#[test]
fn what_is_for_workloads_is_refused_for_a_log_and_a_phase_must_exist() {
    let assay = Assay::new();
    let log = assay.file("access.log", &combined());
    let refused = |arguments: &[&str]| assay.run(arguments).exits(2).stderr.clone();
    let said = refused(&["size", log, "--phase", "top1"]);
    assert!(said.contains("--phase is for workloads") && said.contains("assay workloads"), "{said}");
    let said = refused(&["size", "demo", "--phase", "nothing"]);
    assert!(said.contains("demo has no phase `nothing`; it has "), "{said}");
    let said = refused(&["size", "demo", log]);
    assert!(said.contains("together with other inputs"), "{said}");
}

#[test]
fn what_cannot_be_proved_is_refused_before_anything_runs() {
    let assay = Assay::new();
    let log = assay.file("access.log", &combined());
    let refused = |arguments: &[&str]| assay.run(arguments).exits(2).stderr.clone();
    let said = refused(&["size", log, "--prove", "builtin", "--at", "1GB", "--key", "ignore query"]);
    assert!(said.contains("--prove replays a log as it is"), "{said}");
    let said =
        refused(&["size", "-", "--format", "combined", "--prove", "builtin", "--at", "1GB", "--speed", "0"]);
    assert!(said.contains("cannot be replayed 0 times as fast"), "{said}");
    assay.file("trace.csv", "id,size\n1,2\n");
    let said = refused(&["size", "trace.csv", "--prove", "builtin", "--at", "1GB"]);
    assert!(said.contains("a trace has no URLs to request"), "{said}");
    let said = refused(&["size", "demo", "--prove", "varnich", "--at", "1GB"]);
    assert!(said.contains("varnich"), "{said}");
    let said = refused(&["size", "demo", "--rate", "5", "--prove", "builtin", "--at", "1GB"]);
    assert!(said.contains("--rate does not go with --prove"), "{said}");
    let room = |more: &[&str]| {
        let arguments = [&["size", log, "--json"], more].concat();
        json(&assay.run(&arguments).exits(0).stdout)["input"]["footprint_bytes"].as_u64().unwrap()
    };
    assert_eq!(room(&["--as", "builtin"]) - room(&[]), 10 * 914);
}

#[test]
fn rules_say_what_a_log_does_not_and_one_that_matches_nothing_is_named() {
    let assay = Assay::new();
    let line = |number: u32, url: &str, bytes: u32| {
        format!(
            "192.0.2.7 - - [10/Oct/2025:13:{number:02}:00 +0000] \"GET {url} HTTP/1.1\" 200 {bytes} \"-\" \"agent\"\n"
        )
    };
    // Once a minute: a page with another parameter each time, and a picture.
    let text: String = (0..40)
        .map(|number| {
            line(number, &format!("/page?id=7&utm_source=s{number}"), 900) + &line(number, "/a.jpg", 500)
        })
        .collect();
    let log = assay.file("access.log", &text);
    let simulate = |more: &[&str]| {
        let arguments = [&["size", log, "--policy", "lru", "--sizes", "1MB", "--json"], more].concat();
        json(&assay.run(&arguments).exits(0).stdout)
    };
    let hits = |more: &[&str]| simulate(more)["infinite"]["hits"].as_u64().unwrap();
    assert_eq!((hits(&[]), hits(&["--key", "drop utm_*"])), (39, 78));
    assert_eq!(hits(&["--uncachable", "*.jpg"]), 0);
    let expiring = simulate(&["--ttl", "*.jpg=90s"]);
    // Fresh after one minute, and confirmed after two.
    assert_eq!([&expiring["infinite"]["hits"], &expiring["infinite"]["validated"]], [20, 19]);
    let document = simulate(&["--suggest-keys", "--uncachable", "path:/api/*"]);
    let change = &document["suggestions"][0];
    assert_eq!([&change["rule"], &change["is_safe"]], [&Value::from("drop utm_source"), &Value::from(true)]);
    assert_eq!(change["gained_hits"], 39);
    let notes = document["notes"].to_string();
    assert!(notes.contains("'path:/api/*' matches no request"), "{notes}");
    let refused = |arguments: &[&str]| assay.run(arguments).exits(2).stderr.clone();
    let said = refused(&["size", log, "--key", "drop"]);
    assert!(said.contains("is not a rule of a key"), "{said}");
    let said = refused(&["size", log, "--ttl", "*.jpg"]);
    assert!(said.contains("has no time"), "{said}");
    let said = refused(&["size", "demo", "--suggest-keys"]);
    assert!(said.contains("are for access logs"), "{said}");
}
