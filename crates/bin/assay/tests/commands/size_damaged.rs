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

/// An access log of so many lines, for ten objects.
fn log_of(lines: usize) -> String {
    let line = |number: usize| {
        let object = number % 10;
        format!(
            "192.0.2.7 - - [10/Oct/2025:13:55:{:02} +0000] \"GET /{object} HTTP/1.1\" 200 {} \"-\" \"agent\"\n",
            number % 60,
            1000 + object
        )
    };
    (0..lines).map(line).collect()
}

#[test]
fn a_compressed_log_that_breaks_off_is_simulated_up_to_there_and_it_is_said() {
    let assay = Assay::new();
    // One stored block of gzip, which is not the last one; what follows is missing. It ends in the middle of a line.
    let text = log_of(500);
    let block = &text.as_bytes()[..text.len() - 20];
    let length = u16::try_from(block.len()).unwrap();
    let head = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0];
    let lengths = [length.to_le_bytes(), (!length).to_le_bytes()].concat();
    let cut = assay.path("access.log.gz");
    std::fs::write(&cut, [&head[..], &lengths, block].concat()).unwrap();
    let cut = cut.to_str().unwrap();
    let ran = assay.run(&["size", cut, "--policy", "lru", "--sizes", "64KB"]).exits(0).stdout.clone();
    let said = ran.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("ends early") && said.contains("what comes before that is simulated"), "{said}");
    assert!(said.contains("499 requests, for 10 objects") && said.contains("left out: 1."), "{said}");
}

#[test]
fn what_is_no_trace_is_refused_in_words_that_a_terminal_can_show() {
    let assay = Assay::new();
    let garbage = assay.path("garbage.csv");
    std::fs::write(&garbage, b"\x1b[2J\x00\xff,\xfe\x07\n\x80\x81").unwrap();
    let said = assay.run(&["size", garbage.to_str().unwrap()]).exits(2).stderr.clone();
    assert!(said.contains("\\u{1b}[2J") && said.contains("\\xff") && !said.contains('\u{1b}'), "{said}");
    for name in ["empty.csv", "empty.oracleGeneral"] {
        let said = assay.run(&["size", assay.file(name, "")]).exits(2).stderr.clone();
        assert!(said.contains("is empty: there is no request in it"), "{said}");
    }
    let one = assay.file("one.csv", "id,size\na,5\n");
    let said = assay.run(&["size", one]).exits(0).stdout.clone();
    assert!(said.contains("1 request, for 1 object of 5 B together."), "{said}");
}
