//! The page as a file: small, whole, offline, and with nothing in it that a name could smuggle in.

use assay_report::html;

use crate::synthetic::{self, HOSTILE, Story};

fn page(story: Story) -> String {
    let run = synthetic::run(story);
    let path = html::write(&run.dir).unwrap();
    assert_eq!(path, run.dir.report_path());
    assert!(run.dir.summary_path().is_file());
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn every_story_makes_a_page_under_3_megabytes() {
    for story in Story::ALL {
        let size = page(story).len();
        assert!((50_000..3_000_000).contains(&size), "{story:?}: {size} bytes");
    }
}

#[test]
fn a_run_of_an_hour_with_a_stall_every_second_makes_a_page_under_3_megabytes() {
    let run = synthetic::hour();
    let size = std::fs::metadata(html::write(&run.dir).unwrap()).unwrap().len();
    assert!((100_000..3_000_000).contains(&size), "{size} bytes");
}

#[test]
fn an_invalid_run_says_what_was_seen_where_why_it_matters_and_what_to_do() {
    let page = page(Story::Stalled);
    let banner =
        page.split_once("banner bad").unwrap().1.split_once("</div>\n  <ul class=\"findings").unwrap().0;
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
    assert!(page.contains("\"name\":\"top1\",\"start\":19.25,\"end\":33.25,\"invalid\":true"));
    assert!(page.contains("\"name\":\"dec\",\"start\":33.25,\"end\":37.25,\"invalid\":false"));
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
fn invalid_and_partial_are_said_before_any_number() {
    for (story, word) in
        [(Story::Invalid, "Invalid."), (Story::Interrupted, "Partial."), (Story::Killed, "Partial.")]
    {
        let page = page(story);
        let said = page.find(word).unwrap_or_else(|| panic!("{story:?} does not say {word}"));
        assert!(said < page.find("class=\"tiles\"").unwrap());
    }
    assert!(!page(Story::Good).contains("Invalid."));
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
    let hour = synthetic::hour();
    std::fs::write(std::path::Path::new(&keep).join("hour.html"), html::page(&hour.dir, None).unwrap())
        .unwrap();
}
