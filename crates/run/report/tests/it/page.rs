//! The page as a file: small, whole, offline, and with nothing in it that a name could smuggle in.

use assay_report::html;

use crate::stories;
use crate::synthetic::{self, HOSTILE, Story};

fn page(story: Story) -> String {
    let run = synthetic::run(story);
    let path = html::write(&run.dir).unwrap();
    assert_eq!(path, run.dir.report_path());
    assert!(run.dir.summary_path().is_file());
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn every_run_has_a_page_under_3_megabytes_and_only_a_disturbed_one_is_called_so() {
    for story in Story::ALL {
        let page = page(story);
        assert!((50_000..3_000_000).contains(&page.len()), "{story:?}: {} bytes", page.len());
        let said = page.split_once("<main>").unwrap().1.split_once("</main>").unwrap().0;
        let disturbed = [Story::Ports, Story::Failed, Story::Stalled].contains(&story);
        assert_eq!(said.contains("What disturbed the run"), disturbed, "{story:?}");
    }
}

#[test]
fn a_run_of_an_hour_with_a_stall_every_second_makes_a_page_under_3_megabytes() {
    let run = stories::hour();
    let size = std::fs::metadata(html::write(&run.dir).unwrap()).unwrap().len();
    assert!((100_000..3_000_000).contains(&size), "{size} bytes");
}

#[test]
fn what_disturbed_a_run_is_open_where_it_left_something_unknown_and_folded_where_it_did_not() {
    for (story, is_open) in [(Story::Stalled, true), (Story::Failed, true), (Story::Ports, false)] {
        let page = page(story);
        let (_, rest) = page.split_once("<details class=\"banner doubtful disturbances\"").unwrap();
        assert_eq!(rest.starts_with(" open>"), is_open, "{story:?}");
        let summary = rest.lines().nth(1).unwrap();
        assert!(summary.contains("What disturbed the run</strong>: "), "{story:?}: {summary}");
    }
}

#[test]
fn a_disturbed_run_says_what_was_seen_where_why_it_matters_and_what_to_do() {
    let page = page(Story::Stalled);
    let banner =
        page.split_once("What disturbed the run").unwrap().1.split_once("class=\"tiles\"").unwrap().0;
    let banner = banner.split_once("worth-knowing").unwrap().0;
    for said in [
        "stood still for 304 ms",
        "in phase top1",
        "24.4 s",
        "Assay (stalled)",
        "Why it matters",
        "--realtime",
    ] {
        assert!(banner.contains(said), "{said} in {banner}");
    }
    assert!(!banner.contains("hypervisor"), "what is only worth knowing comes later");
    assert!(page.contains("hypervisor took 2.4 %"));
    assert!(page.contains("\"name\":\"top1\",\"start\":19.25,\"end\":33.25,\"disturbed\":true"));
    assert!(page.contains("\"name\":\"dec\",\"start\":33.25,\"end\":37.25,\"disturbed\":false"));
}

#[test]
fn the_page_shows_how_much_of_the_calibrated_rate_was_used() {
    let used = "This run used 23 % of what this machine can offer for this workload.";
    assert!(page(Story::Calibrated).contains(used));
    assert!(!page(Story::Good).contains(used) && page(Story::Good).contains("--calibrate"));
}

#[test]
fn the_page_loads_nothing_from_the_network() {
    let page = page(Story::Good);
    for reference in
        ["src=\"http", "href=\"http", "src=\"//", "url(http", "@import", "<link", "<iframe", "<img"]
    {
        assert!(!page.contains(reference), "{reference}");
    }
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn names_cannot_become_markup_or_end_the_script() {
    let page = page(Story::Hostile);
    assert!(!page.contains(HOSTILE) && !page.contains("<img"));
    assert_eq!(page.matches("</script>").count(), 2, "the numbers and the program, and no more");
    assert!(page.contains("&lt;script&gt;"), "it is shown as what it is");
}

#[test]
fn that_a_run_is_partial_is_said_before_any_number() {
    for story in [Story::Interrupted, Story::Killed] {
        let page = page(story);
        let said = page.find("Partial.").unwrap_or_else(|| panic!("{story:?} does not say it"));
        assert!(said < page.find("class=\"tiles\"").unwrap());
    }
    assert!(!page(Story::Good).contains("Partial."));
}

#[test]
fn the_page_says_how_to_repeat_the_run() {
    assert!(page(Story::Good).contains("assay run image.pg --proxy varnish --rehearse 60s --seed 7"));
}

#[test]
fn what_was_required_is_listed_with_what_was_seen() {
    let run = synthetic::run(Story::Good);
    let mut info = run.dir.read_info().unwrap();
    info.requirements = vec!["dhr > 0.4".into(), "top1.p99(hit) < 1us".into()];
    run.dir.write_info(&info).unwrap();
    let page = html::page(&run.dir, None).unwrap();
    let list = page.split_once("What was required").unwrap().1.split_once("</div>\n").unwrap().0;
    assert!(list.contains("dhr &gt; 0.4") && page.contains("p99(hit) &lt; 1us"), "{list}");
    assert!(page.contains("failed: ") && page.contains(", in top1"));
}

#[test]
fn no_line_of_the_verdict_ends_between_a_number_and_its_unit() {
    for story in [Story::Good, Story::Stalled, Story::Troubled] {
        let page = page(story);
        let verdict = page.split_once("class=\"findings\"").unwrap().1.split_once("</ul>").unwrap().0;
        for unit in ["%", "ms", "µs", "s", "points"] {
            for (at, _) in verdict.match_indices(&format!(" {unit}")) {
                let ends = |c: char| !c.is_alphanumeric();
                let before = verdict[..at].chars().next_back().unwrap();
                let is_unit = verdict[at + 1 + unit.len()..].starts_with(ends);
                assert!(
                    !(is_unit && before.is_ascii_digit()),
                    "{story:?}: {}",
                    &verdict[at.saturating_sub(30)..]
                );
            }
        }
        assert!(verdict.contains("\u{a0}%"), "{story:?}");
    }
}

#[test]
fn every_chart_is_said_in_a_sentence_and_in_numbers_by_phase() {
    let page = page(Story::Good);
    let rate = page.split_once("id=\"chart-rate\"").unwrap().1.split_once("</figure>").unwrap().0;
    assert!(rate.contains("aria-describedby=\"said-rate\"") && rate.contains("offered: mostly about"));
    assert_eq!(rate.matches("<th scope=\"row\">").count(), 10, "nine phases and the whole run");
}

#[test]
fn errors_come_before_the_charts_with_what_they_mean() {
    let page = page(Story::Troubled);
    let errors = page.find("<section id=\"errors\">").unwrap();
    assert!(errors < page.find("<section id=\"charts\"").unwrap());
    assert!(page.contains("The response had expired before it was served"));
    assert!(!self::page(Story::Good).contains("<section id=\"errors\">"));
}

/// Leaves a page of every story in `ASSAY_PAGES`, to be looked at.
#[test]
fn pages_can_be_kept_to_be_looked_at() {
    let Some(keep) = std::env::var_os("ASSAY_PAGES") else { return };
    for story in Story::ALL {
        let path = std::path::Path::new(&keep).join(format!("{story:?}.html").to_lowercase());
        std::fs::write(path, page(story)).unwrap();
    }
    let hour = stories::hour();
    std::fs::write(std::path::Path::new(&keep).join("hour.html"), html::page(&hour.dir, None).unwrap())
        .unwrap();
}
