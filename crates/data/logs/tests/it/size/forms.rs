use std::io::Write as _;

use assay_cache::policy::Admission;
use assay_logs::size::cooperate::Hierarchy;
use assay_logs::size::document::{SizeDocument, SizeOptions};
use assay_logs::size::input::{ReadOptions, read};
use assay_logs::size::keys::LogRules;
use assay_logs::size::layout::Layout;
use assay_logs::size::policy::Policy;
use assay_logs::size::proof::{Proof, ProofCell, Ratios};
use assay_logs::size::{sheet, terminal};
use assay_logs::terminal::TextStyle;
use assay_testbed::violations;
use flate2::Compression;
use flate2::write::GzEncoder;

/// The document for a file with this name and these bytes.
fn document(name: &str, bytes: &[u8]) -> SizeDocument {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    let options = SizeOptions {
        policies: Policy::ALL.to_vec(),
        sizes: Vec::new(),
        warm_up: 0.1,
        admission: Admission::All,
        stored_as: None,
    };
    let mut document = SizeDocument::of(
        &read(&[path], None, LogRules::default(), ReadOptions::default()).unwrap(),
        &options,
    )
    .unwrap();
    // Where the file lies is a place on one machine, and may be long.
    document.input.files = vec![name.into()];
    document
}

fn csv() -> SizeDocument {
    let lines = (0..500u64).map(|n| format!("{n},{},{}\n", n * n % 61, 1000 + n * n % 61 * 700));
    document("a.csv", ("time,id,size\n".to_owned() + &lines.collect::<String>()).as_bytes())
}

#[test]
fn the_document_is_what_its_schema_says() {
    let schema = SizeDocument::json_schema();
    for document in [csv(), document("b.csv", b"id\n1\n2\n1\n")] {
        let value = serde_json::to_value(&document).unwrap();
        assert_eq!(violations(&schema, &value), [""; 0]);
    }
}

#[test]
fn the_terminal_keeps_within_its_width_and_shows_every_policy() {
    let document = csv();
    for width in [60, 80, 100] {
        let text = terminal::render(&document, TextStyle { colour: false, width });
        let too_long: Vec<_> = text.lines().filter(|line| line.chars().count() > width).collect();
        assert!(too_long.is_empty() && !text.contains('\x1b'), "{width}: {too_long:#?}");
        assert!(Policy::ALL.iter().all(|policy| text.contains(policy.name())), "{text}");
    }
    assert!(terminal::render(&document, TextStyle { colour: true, width: 80 }).contains("\x1b["));
}

#[test]
fn two_spaces_or_more_are_before_every_head_and_a_figure_ends_below_its_head() {
    let text = terminal::render(&csv(), TextStyle { colour: false, width: 1000 });
    let mut lines = text.lines().skip_while(|line| !line.starts_with("hits by size"));
    let (head, figures) = (lines.next().unwrap(), lines.next().unwrap());
    let heads: Vec<&str> = head.split("  ").map(str::trim).filter(|head| !head.is_empty()).collect();
    let names: Vec<&str> = Policy::ALL.iter().map(|policy| policy.name()).collect();
    assert_eq!(heads, [&["hits by size"], &names[..]].concat());
    for end in head.match_indices("  ").map(|(at, _)| at).chain([head.len()]).skip(1) {
        let is_end_of_head = !head[..end].ends_with(' ');
        assert!(!is_end_of_head || figures[..end].ends_with('%'), "{head}\n{figures}");
    }
}

#[test]
fn caches_that_work_together_have_objects_for_room_where_the_input_has_no_sizes() {
    let lines: String = (0..500u64).map(|n| format!("{}\n", n * n % 61)).collect();
    for (head, unit, sizes) in
        [("id\n", "objects", ["5 objects", "1,200 objects"]), ("id,size\n", "bytes", ["5 B", "1.17 KB"])]
    {
        let lines = if unit == "bytes" { lines.replace('\n', ",1\n") } else { lines.clone() };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        std::fs::write(&path, head.to_owned() + &lines).unwrap();
        let input = read(&[path], None, LogRules::default(), ReadOptions::default()).unwrap();
        let options = SizeOptions {
            policies: vec![Policy::LRU],
            sizes: vec![5, 1200],
            warm_up: 0.0,
            admission: Admission::All,
            stored_as: None,
        };
        let mut document = SizeDocument::of(&input, &options).unwrap();
        document.cooperate(&input.requests, &Hierarchy::layers(&[5, 1200], 1, Layout::BODIES), 0.0);
        let text = terminal::render(&document, TextStyle { colour: false, width: 80 });
        let (layers, by_size) = text.split_once("hits by size").unwrap();
        let page = sheet(&document);
        let rows = &page.sections.iter().find(|section| section.id == "together").unwrap().tables[0].rows;
        for (row, size) in rows.iter().zip(sizes) {
            assert!(layers.contains(&format!("  {size}  ")) && by_size.contains(size), "{size}: {text}");
            assert_eq!(row.cells[0], size);
        }
    }
}

/// A prediction beside a measurement, and one beside none.
fn proof() -> Proof {
    let cell = |proxy: &str, measured| ProofCell {
        proxy: proxy.into(),
        policy: Policy::LRU,
        size_bytes: 1 << 30,
        overhead_bytes: 290,
        unit_bytes: 1,
        filled_percent: 100,
        predicted: Ratios { dhr: 0.5, bhr: 0.4 },
        measured,
        measured_dhr_range: None,
        runs: 1,
        repetitions: 1,
    };
    let measured = Some(Ratios { dhr: 0.45, bhr: 0.38 });
    let cells = vec![cell("trafficserver", measured), cell("nginx", None)];
    Proof { experiment: "runs/size-demo".into(), phases: Vec::new(), cells }
}

#[test]
fn predictions_stand_beside_measurements_in_every_form_and_the_verdict_comes_first() {
    let mut document = csv();
    document.prove(proof());
    assert!(document.advice[0].contains("trafficserver 5.0 points lower"), "{:?}", document.advice);
    let text = terminal::render(&document, TextStyle { colour: false, width: 80 });
    assert!(text.lines().all(|line| line.chars().count() <= 80) && text.contains("-5.0"), "{text}");
    let page = sheet(&document);
    let section = page.sections.iter().find(|section| section.id == "proof").unwrap();
    assert_eq!(section.tables[0].rows.len(), 2);
}

#[test]
fn the_page_has_a_line_of_each_chart_for_every_policy() {
    let page = sheet(&csv());
    let curves = page.sections.iter().find(|section| section.id == "curves").unwrap();
    let lines: Vec<usize> = curves.plots.iter().map(|plot| plot.lines.len()).collect();
    assert_eq!(lines, [Policy::ALL.len(); 2]);
}

#[test]
fn a_compressed_trace_that_is_cut_is_simulated_as_far_as_it_goes() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::none());
    encoder.write_all(b"time,id,size\n").unwrap();
    for number in 0..100_000 {
        writeln!(encoder, "{number},7,5").unwrap();
    }
    let bytes = encoder.finish().unwrap();
    let cut = document("cut.csv.gz", &bytes[..bytes.len() / 2]);
    assert!(cut.notes.iter().any(|note| note.contains("ends early")), "{:?}", cut.notes);
    assert!((10_000..100_000).contains(&cut.input.requests), "{:?}", cut.input);
}
