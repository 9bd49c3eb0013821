//! Reports of made-up evaluations, as their readers see them.

use std::path::Path;

use assay_protocol::evaluation::ListenerRow;
use assay_record::spe::{
    ListenerWriter, ResponseError, ResponseRow, ResponseWriter, SpeDir, SpeInfo, Totals, Verdict,
};
use assay_report::spe::{self, Evaluation};
use assay_report::terminal::Style;

use assay_testbed::pages::golden;
use assay_testbed::violations;

use crate::review::made::{REQUESTS, info, response, write};

/// A fourth of the responses of `plain` could not be compared: the Collector sent 503 for them, in 110 bytes.
fn without_room(request: u64, target: u16) -> ResponseRow {
    let row = response(request, target);
    match target == 2 && request.is_multiple_of(4) {
        true => ResponseRow {
            status: Some(503),
            first_byte_us: Some(9),
            body_bytes: 110,
            verdict: Verdict::NotKept,
            ..row
        },
        false => row,
    }
}

#[test]
fn what_assay_could_not_compare_is_said_first_and_counts_for_nobody() {
    let tmp = tempfile::tempdir().unwrap();
    let dir = SpeDir::create(&tmp.path().join("e")).unwrap();
    let not_kept = REQUESTS / 4;
    let mut info = info();
    (info.totals.not_kept, info.totals.repeated) = (not_kept, 3);
    dir.write_info(&info).unwrap();
    let mut responses = ResponseWriter::create(&dir.responses_path()).unwrap();
    // Responses of proxies come before direct's here.
    for target in [2, 1, 3, 0] {
        (0..REQUESTS).for_each(|request| responses.push(&without_room(request, target)).unwrap());
    }
    responses.finish().unwrap();
    let mut listeners = ListenerWriter::create(&dir.listeners_path()).unwrap();
    let lacks = not_kept * (10_000 - 110);
    for (listener, bytes_out) in (0..).zip([0, 0, lacks, 0].map(|lacks| REQUESTS * 10_000 - lacks)) {
        listeners
            .push(&ListenerRow { listener, requests: REQUESTS, bytes_out, ..ListenerRow::default() })
            .unwrap();
    }
    listeners.finish().unwrap();
    let evaluation = spe::evaluate(&dir).unwrap();
    let (plain, swift) = (&evaluation.targets[2], &evaluation.targets[1]);
    assert_eq!((plain.not_kept, swift.not_kept), (not_kept, 0));
    assert_eq!((plain.requests, plain.delivered), (REQUESTS, REQUESTS - not_kept));
    assert_eq!((plain.compared, plain.response_ms.count), (REQUESTS - not_kept, REQUESTS - not_kept));
    // All that is left is as direct's, request by request, byte by byte.
    for ratio in [plain.matching, plain.delivered_ratio].map(|share| share.unwrap().value) {
        assert_eq!(ratio, 1.0);
    }
    assert_eq!((plain.bytes_sent_ratio, plain.bytes_received_ratio), (Some(1.0), Some(1.0)));
    assert_eq!((plain.requests_received_ratio, plain.bandwidth_saved), (Some(1.0), Some(0.0)));
    assert_eq!(plain.requests_saved, Some(0.0));
    let first = &evaluation.verdict[0];
    assert_eq!(first.question, "What could Assay not compare?");
    assert!(
        first.text.starts_with("Responses: 150 of plain (25.0 %). The Collector had no room"),
        "{}",
        first.text
    );
    let wrong =
        evaluation.verdict.iter().find(|response| response.question == "Was anything wrong?").unwrap();
    assert!(!wrong.text.contains("plain"), "{}", wrong.text);
    assert!(
        evaluation.warnings[0].contains("could not keep 150 of the responses"),
        "{:?}",
        evaluation.warnings
    );
    assert!(evaluation.differing.iter().all(|group| group.target != "plain"));
    let shown = |text: &str| {
        let place = |words: &str| text.find(words).unwrap_or_else(|| panic!("{words} is missing"));
        assert!(place("What could Assay not compare?") < place("What was evaluated?"));
    };
    shown(&evaluation.to_terminal(None, &Style { colour: false, width: 100 }));
    shown(&evaluation.to_html().unwrap());
    let value: serde_json::Value = serde_json::from_str(&evaluation.to_json().unwrap()).unwrap();
    assert_eq!(value["targets"][2]["not_kept"], not_kept);
    assert_eq!(violations(&Evaluation::json_schema(), &value), [""; 0]);
}

#[test]
fn a_request_that_its_client_cancelled_is_in_no_time_of_a_proxy() {
    let tmp = tempfile::tempdir().unwrap();
    let dir = SpeDir::create(&tmp.path().join("e")).unwrap();
    dir.write_info(&info()).unwrap();
    let mut responses = ResponseWriter::create(&dir.responses_path()).unwrap();
    // What the client did not wait for took a minute.
    let slow = |request: u64, target: u16| ResponseRow {
        error: (target == 0).then_some(ResponseError::ClientGone),
        transfer_us: (target > 0).then_some(60_000_000),
        body_bytes: if target == 0 { 3_000 } else { 1_000_000 },
        ..response(request, target)
    };
    for (target, request) in
        [2, 1, 0].into_iter().flat_map(|target| (0..100).map(move |request| (target, request)))
    {
        let of = if request == 50 { slow } else { response };
        responses.push(&of(request, target)).unwrap();
    }
    responses.finish().unwrap();
    let evaluation = spe::evaluate(&dir).unwrap();
    let [direct, swift, plain] = [0, 1, 2].map(|index: usize| &evaluation.targets[index]);
    assert_eq!([direct, swift, plain].map(|target| (target.cancelled, target.delivered)), [(1, 99); 3]);
    assert!(plain.response_ms.max.unwrap() < 1_000.0, "{:?}", plain.response_ms);
    assert_eq!((plain.bytes_sent_ratio, plain.delivered_ratio.unwrap().value), (Some(1.0), 1.0));
    assert!(evaluation.warnings.iter().any(|text| text.starts_with("1 of the requests were cancelled")));
}

#[test]
fn requests_that_a_proxy_was_never_sent_are_in_none_of_its_figures() {
    let tmp = tempfile::tempdir().unwrap();
    let dir = SpeDir::create(&tmp.path().join("e")).unwrap();
    dir.write_info(&info()).unwrap();
    let mut responses = ResponseWriter::create(&dir.responses_path()).unwrap();
    let never = |request: u64| ResponseRow {
        status: None,
        connect_us: None,
        first_byte_us: None,
        transfer_us: None,
        body_bytes: 0,
        checksum: None,
        verdict: Verdict::NotCompared,
        ..response(request, 2)
    };
    for request in 0..100 {
        let direct = response(request, 0);
        match request {
            // The body was too large; the client left while the body came; the origin's response broke off.
            0..20 => responses.push(&never(request)),
            20..60 => Ok(()),
            _ => responses.push(&response(request, 2)),
        }
        .unwrap();
        let error = match request {
            20..40 => Some(ResponseError::ClientGone),
            40..60 => Some(ResponseError::Truncated),
            _ => None,
        };
        let verdict = if error.is_some() { Verdict::NoResponse } else { direct.verdict };
        responses.push(&ResponseRow { error, verdict, ..direct }).unwrap();
    }
    responses.finish().unwrap();
    let mut listeners = ListenerWriter::create(&dir.listeners_path()).unwrap();
    for (listener, requests) in [(0, 100), (2, 40)] {
        let row = ListenerRow { listener, requests, bytes_out: requests * 10_000, ..ListenerRow::default() };
        listeners.push(&row).unwrap();
    }
    listeners.finish().unwrap();
    let evaluation = spe::evaluate(&dir).unwrap();
    let plain = &evaluation.targets[2];
    assert_eq!((plain.requests, plain.delivered), (40, 40));
    assert_eq!(plain.delivered_ratio.unwrap().value, 1.0);
    assert_eq!((plain.requests_saved, plain.bandwidth_saved), (Some(0.0), Some(0.0)));
    assert_eq!(plain.bytes_sent_ratio, Some(1.0));
}

#[test]
fn a_number_that_nobody_can_have_counted_is_an_error_that_names_its_file() {
    let tmp = tempfile::tempdir().unwrap();
    let dir = write(&tmp.path().join("e"), &info(), 20);
    std::fs::remove_file(dir.listeners_path()).unwrap();
    let mut listeners = ListenerWriter::create(&dir.listeners_path()).unwrap();
    for bytes_out in [u64::MAX, 7] {
        listeners.push(&ListenerRow { bytes_out, ..ListenerRow::default() }).unwrap();
    }
    listeners.finish().unwrap();
    let said = spe::evaluate(&dir).unwrap_err().to_string();
    assert!(said.contains("listeners.parquet") && said.contains("bytes_out"), "{said}");
}

fn evaluated() -> Evaluation {
    let tmp = tempfile::tempdir().unwrap();
    let mut evaluation = spe::evaluate(&write(&tmp.path().join("e"), &info(), REQUESTS)).unwrap();
    evaluation.evaluation = "spe/demo".into();
    evaluation
}

#[test]
fn the_terminal_shows_the_tables_of_the_method() {
    let tmp = tempfile::tempdir().unwrap();
    let mut info = info();
    info.targets[3].label = "wrong".into();
    let mut evaluation = spe::evaluate(&write(&tmp.path().join("e"), &info, REQUESTS)).unwrap();
    evaluation.evaluation = "spe/demo".into();
    let text = evaluation.to_terminal(None, &Style { colour: false, width: 100 });
    golden(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/spe.txt"), &text);
    assert!(!text.contains('\u{1b}'), "what proxies say cannot steer the terminal");
}

#[test]
fn the_document_is_true_to_its_schema_and_comes_back_as_it_was() {
    let text = evaluated().to_json().unwrap();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(violations(&Evaluation::json_schema(), &value), [""; 0]);
    let back: Evaluation = serde_json::from_str(&text).unwrap();
    assert_eq!(back.to_json().unwrap(), text);
}

#[test]
fn shares_and_differences_are_those_that_were_made_up() {
    let found = evaluated();
    assert_eq!((found.requests, found.tunnels), (REQUESTS, 1));
    let [direct, swift, plain, wrong] = found.targets.as_slice() else { panic!("four targets") };
    assert_eq!(direct.bytes_received_ratio, Some(1.0));
    assert_eq!((swift.bytes_received_ratio, swift.bandwidth_saved), (Some(0.5), Some(0.5)));
    assert_eq!(plain.matching.unwrap().value, 1.0);
    assert_eq!(wrong.dropped, REQUESTS / 10);
    assert_eq!(wrong.requests, REQUESTS * 9 / 10);
    assert_eq!(wrong.delivered_ratio.unwrap().value, 0.8);
    assert_eq!(wrong.not_matching.unwrap().value, 0.375, "three of the eight that came");
    assert_eq!(wrong.errors["timed_out"], REQUESTS / 10);
    let of = |target: &str, base: &str| {
        found.differences.iter().find(|one| one.target == target && one.base == base).unwrap()
    };
    let plain = of("plain", "direct");
    assert_eq!(
        (plain.pairs, plain.mean_ms.unwrap().value),
        (REQUESTS, 0.6),
        "it takes the same, and 0.6 ms more"
    );
    assert_eq!((plain.mean_ms.unwrap().low, plain.faster.unwrap().value), (Some(0.6), 0.0));
    let swift = of("swift", "direct");
    assert_eq!(swift.faster.unwrap().value, 0.5);
    assert!(swift.mean_ms.unwrap().high.unwrap() < 0.0, "it can be told from direct: {swift:?}");
}

#[test]
fn what_differed_is_grouped_by_what_it_was_with_examples() {
    let found = evaluated();
    let kinds: Vec<(Verdict, &str, u64)> =
        found.differing.iter().map(|group| (group.verdict, group.what.as_str(), group.count)).collect();
    let each = REQUESTS / 10;
    assert_eq!(
        kinds,
        [
            (Verdict::StatusCodeMismatch, "200 → 503", each),
            (Verdict::HeaderMismatch, "content-type", each),
            (Verdict::BodyMismatch, "", each),
            (Verdict::NoResponse, "timed_out", each),
        ]
    );
    let requests: Vec<u64> = found.differing[0].examples.iter().map(|example| example.request).collect();
    assert_eq!(requests, [0, 10, 20]);
}

#[test]
fn the_place_in_the_order_counts_only_where_its_effect_can_be_told() {
    let found = evaluated();
    assert_eq!(found.places.iter().map(|place| place.place).collect::<Vec<_>>(), [0, 1, 2]);
    assert!(found.places.iter().all(|place| place.effect_ms.is_some()));
    let tmp = tempfile::tempdir().unwrap();
    let fixed = SpeInfo { turns: "fixed".into(), ..info() };
    let found = spe::evaluate(&write(&tmp.path().join("e"), &fixed, 50)).unwrap();
    assert!(found.places.iter().all(|place| place.effect_ms.is_none()));
    assert!(found.warnings.iter().any(|warning| warning.contains("fixed order")));
}

#[test]
fn a_proxy_that_does_not_respond_neither_saves_anything_nor_was_all_well_with_it() {
    let found = evaluated();
    let response =
        |question: &str| found.verdict.iter().find(|response| response.question.contains(question)).unwrap();
    assert!(
        response("save").text.contains("(80.0 % of the responses) delivered too few"),
        "{:?}",
        found.verdict
    );
    let tmp = tempfile::tempdir().unwrap();
    let waiting = SpeInfo { totals: Totals { waiting: vec![0, 0, 5, 0], ..info().totals }, ..info() };
    let found = spe::evaluate(&write(&tmp.path().join("e"), &waiting, 50)).unwrap();
    let wrong = found.verdict.iter().find(|response| response.question.contains("wrong")).unwrap();
    assert!(wrong.text.contains("plain: 5 had no response when it ended"), "{wrong:?}");
}

#[test]
fn an_evaluation_of_a_newer_version_says_so() {
    let tmp = tempfile::tempdir().unwrap();
    let newer = SpeInfo { schema: info().schema + 1, version: "9.9".into(), ..info() };
    let found = spe::evaluate(&write(&tmp.path().join("e"), &newer, 20)).unwrap();
    assert!(found.warnings.iter().any(|warning| warning.contains("newer version of Assay (9.9)")));
}

#[test]
fn origins_that_were_not_there_are_a_reason_for_care_once_they_matter() {
    let tmp = tempfile::tempdir().unwrap();
    let trust = |origin_errors, requests| {
        let failed = SpeInfo { totals: Totals { origin_errors, ..info().totals }, ..info() };
        let dir = tmp.path().join(format!("{origin_errors}-{requests}"));
        let found = spe::evaluate(&write(&dir, &failed, requests)).unwrap();
        assert!(found.warnings.iter().any(|warning| warning.contains("fetches from origins failed")));
        found.verdict.last().unwrap().text.clone()
    };
    assert!(trust(50, 50).contains("50 fetches from origins failed"));
    assert!(!trust(1, 200).contains("fetches from origins failed"));
}

#[test]
fn what_the_collector_broke_off_itself_is_a_reason_for_care_and_not_left_to_look_like_a_proxys_fault() {
    let tmp = tempfile::tempdir().unwrap();
    let broken = SpeInfo { totals: Totals { given_up: 7, ..info().totals }, ..info() };
    let found = spe::evaluate(&write(&tmp.path().join("e"), &broken, 50)).unwrap();
    assert!(
        found.warnings.iter().any(|warning| warning.contains("broke off 7 responses")),
        "{:?}",
        found.warnings
    );
    let trust = found.verdict.last().unwrap();
    assert!(trust.text.contains("itself broke off 7 responses"), "{trust:?}");
    assert!(found.to_html().unwrap().contains("Responses that the Collector broke off"));
    assert!(!evaluated().warnings.iter().any(|warning| warning.contains("broke off")));
}

#[test]
fn an_evaluation_that_was_cut_off_is_reported_as_far_as_it_goes() {
    let tmp = tempfile::tempdir().unwrap();
    let dir = SpeDir::create(tmp.path()).unwrap();
    dir.write_info(&SpeInfo { ended: None, ..info() }).unwrap();
    let found = spe::evaluate(&dir).unwrap();
    assert!(found.partial && found.requests == 0 && found.warnings.len() == 3, "{:?}", found.warnings);
    assert!(found.to_html().is_ok());
    std::fs::write(dir.responses_path(), b"PAR1 not really").unwrap();
    assert!(spe::evaluate(&dir).unwrap_err().to_string().contains("responses.parquet"));
}

#[test]
fn an_evaluation_that_was_killed_is_reported_with_all_that_it_wrote() {
    let tmp = tempfile::tempdir().unwrap();
    let dir = SpeDir::create(tmp.path()).unwrap();
    dir.write_info(&SpeInfo { ended: None, ..info() }).unwrap();
    let mut responses = ResponseWriter::create(&dir.responses_path()).unwrap();
    for target in 0..4 {
        (0..REQUESTS).for_each(|request| responses.push(&without_room(request, target)).unwrap());
    }
    responses.keep().unwrap();
    let mut listeners = ListenerWriter::create(&dir.listeners_path()).unwrap();
    for listener in 0..4 {
        let row = ListenerRow {
            listener,
            requests: REQUESTS,
            bytes_out: REQUESTS * 10_000,
            ..ListenerRow::default()
        };
        listeners.push(&row).unwrap();
    }
    listeners.keep().unwrap();
    // Whoever is killed finishes nothing.
    std::mem::forget((responses, listeners));
    let found = spe::evaluate(&dir).unwrap();
    assert!(found.partial && found.requests == REQUESTS, "{found:?}");
    assert_eq!((found.targets[1].requests, found.targets[1].bytes_received_ratio), (REQUESTS, Some(1.0)));
    let warned: Vec<_> = found.warnings.iter().filter(|warning| warning.contains("There is no")).collect();
    assert!(warned.is_empty(), "{warned:?}");
    assert!(found.warnings.iter().any(|warning| warning.contains("goes on, or was cut off")));
}

#[test]
fn the_page_needs_no_network_and_no_name_can_do_harm() {
    let page = evaluated().to_html().unwrap();
    assert!(!page.contains("<script>alert"), "names are escaped");
    assert!(!page.contains("http://www.example.org/0?q=<"), "URLs are escaped");
    assert!(
        !page.contains("src=\"http") && !page.contains("href=\"http"),
        "it loads nothing from the network"
    );
    for id in
        ["overview-table", "times-table", "differences-table", "places-table", "chart-cdf", "chart-received"]
    {
        assert!(page.contains(&format!("id=\"{id}\"")), "{id} is missing");
    }
}
