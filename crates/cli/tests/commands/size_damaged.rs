//! `assay size` on inputs that are damaged, or of which nothing is left: what was wrong is said, and nothing that can be read is lost.

use crate::support::Assay;

#[test]
fn records_with_impossible_sizes_are_left_out_and_sums_that_no_number_holds_are_refused() {
    let assay = Assay::new();
    let rows = |size: &str, times: usize| format!("1,a,{size}\n").repeat(times);
    let text =
        "time,id,size\n".to_owned() + &rows("-5", 1) + &rows("18446744073709551615", 2) + &rows("10", 3);
    let trace = assay.file("some.csv", &text);
    let said = assay.run(&["size", trace, "--policy", "lru,arc,s3-fifo,belady"]).exits(0).stdout.clone();
    assert!(said.contains("could not be read and were left out: 3.") && said.contains("66.7 %"), "{said}");
    // 2^48 bytes each, which are more than 2^62 together.
    let text = "time,id,size\n".to_owned() + &rows("281474976710656", 20_000);
    let said = assay.run(&["size", assay.file("many.csv", &text)]).exits(2).stderr.clone();
    assert!(said.contains("together they are more than 4 EB"), "{said}");
}

#[test]
fn where_nothing_is_left_it_is_said_why() {
    let assay = Assay::new();
    let line =
        "192.0.2.7 - - [10/Oct/2025:13:55:00 +0000] \"GET http://h/a HTTP/1.1\" 200 0 \"-\" \"agent\"\n";
    let log = assay.file("access.log", &line.repeat(9));
    let said = assay.run(&["size", log, "--hosts", "nobody"]).exits(2).stderr.clone();
    assert!(
        said.contains("there is no request in") && said.contains("9 requests for other hosts were left out"),
        "{said}"
    );
    assert!(!said.contains("--format"), "{said}");
    let said = assay.run(&["size", log, "--policy", "lru"]).exits(0).stdout.clone();
    assert!(said.contains("9 requests are for objects without a body"), "{said}");
}
