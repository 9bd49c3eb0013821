//! The document in every form: JSON against its schema, terminal, page, table.

use assay_logs::document::{Count, LogsDocument};
use assay_logs::terminal::{TextStyle, render};
use assay_logs::{sheet, table};

use crate::support::{analyse, analyse_text, lines_of};
use assay_testbed::violations;

#[test]
fn the_document_is_what_its_schema_says() {
    let schema = LogsDocument::json_schema();
    for name in ["squid", "varnish"] {
        let document = analyse(&[lines_of(&format!("{name}.log"))], None);
        let value = serde_json::to_value(&document).unwrap();
        assert_eq!(violations(&schema, &value), [""; 0]);
    }
}

#[test]
fn objects_of_different_hosts_are_different_where_the_host_stands_first() {
    let line = |host: &str| {
        format!(
            "{host} 10.0.0.1 - - [10/Oct/2025:13:00:00 +0000] \"GET /x HTTP/1.1\" 200 100 \"-\" \"curl/8\"\n"
        )
    };
    let document =
        analyse_text((line("a.example") + &line("b.example") + &line("a.example")).as_bytes(), None);
    assert_eq!(document.inputs[0].format, "host-combined");
    let different = &document.distinct;
    let count = |count: &Option<Count>| count.as_ref().map(|count| count.count);
    let counts = [count(&different.urls), count(&different.hosts), count(&different.clients)];
    assert_eq!(counts, [Some(2.0), Some(2.0), Some(1.0)]);
}

#[test]
fn the_parts_of_a_hit_ratio_add_up_to_it_though_some_outcomes_are_not_known() {
    let line = |outcome: &str, hierarchy: &str| {
        format!("1.0 2 a {outcome}/200 100 GET http://a.example/ - {hierarchy}/peer text/html\n")
    };
    let text = [
        line("TCP_MEM_HIT", "HIER_NONE").repeat(2),
        line("TCP_MISS", "SIBLING_HIT"),
        line("TCP_MISS", "PARENT_HIT"),
        line("TCP_REFRESH_UNMODIFIED", "HIER_DIRECT"),
        line("TCP_MISS", "HIER_DIRECT").repeat(3),
        line("WHATEVER", "HIER_DIRECT").repeat(8),
    ];
    let document = analyse_text(text.concat().as_bytes(), Some("squid"));
    assert_eq!((document.all.requests, document.all.unknown, document.all.dhr), (16, 8, Some(0.5)));
    let terminal = render(&document, TextStyle { colour: false, width: 120 });
    let page = format!("{:?}", sheet(&document));
    let parts = "local 25.0 %, sibling 12.5 %, parent 12.5 %; 12.5 % revalidated";
    assert!(terminal.contains(&format!("DHR 50.0 %, BHR 50.0 %: {parts}")), "{terminal}");
    assert!(page.contains(parts), "{page}");
}

#[test]
fn the_terminal_keeps_within_its_width_and_needs_no_colour() {
    let mut document = analyse(&[lines_of("squid.log")], None);
    // Where the file lies is a place on one machine, and may be long.
    document.inputs[0].name = "access.log".into();
    for width in [60, 80, 100] {
        let text = render(&document, TextStyle { colour: false, width });
        assert!(!text.contains('\x1b'));
        let too_long: Vec<_> = text.lines().filter(|line| line.chars().count() > width).collect();
        assert!(width < 80 || too_long.is_empty(), "{width}: {too_long:#?}");
    }
    assert!(render(&document, TextStyle { colour: true, width: 80 }).contains("\x1b["));
}

#[test]
fn what_stands_in_a_log_cannot_control_the_terminal_and_reaches_the_page_as_text() {
    let evil = "1.0 2 a TCP_MISS/200 5 GET http://<script>alert(1)</script>/\x1b[31m - D/<b> <i>\n";
    let document = analyse_text(evil.as_bytes(), Some("squid"));
    // Whoever makes the page escapes what it is given; nothing is marked as safe here.
    let text = format!("{:?}", sheet(&document));
    assert!(text.contains("<b>") && text.contains("<script>alert(1)<"), "{text}");
    // Debug doubles the backslash of what is escaped already.
    assert_eq!(text.matches(r"\u{1b}").count(), text.matches(r"\\u{1b}").count());
    assert!(!render(&document, TextStyle { colour: false, width: 100 }).contains('\x1b'));
}

#[test]
fn the_table_has_a_row_for_every_group() {
    let document = analyse(&[lines_of("nginx.log")], None);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("figures.parquet");
    table::write(&document, &path).unwrap();
    assert!(std::fs::read(&path).unwrap().starts_with(b"PAR1"));
}
