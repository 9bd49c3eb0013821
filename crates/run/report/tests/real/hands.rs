//! The page under somebody's hands: mouse, keys, finger and paper, in a real browser.

use std::path::Path;

use assay_report::html;
use serde_json::{Value, json};

use crate::browser::chromium;
use crate::devtools::Page;
use crate::synthetic::{self, Run, Story};

fn address(run: &Run) -> String {
    format!("file://{}", html::write(&run.dir).unwrap().display())
}

fn open(chromium: &Path, run: &Run, width: u32, phone: bool) -> Page {
    let mut page = Page::new(chromium);
    page.window(width, 900, phone);
    page.visit(&address(run));
    page
}

/// What all charts over time show, each different stretch once.
fn stretches(page: &mut Page) -> Vec<String> {
    let all = page.js(
        "[...new Set(['rate', 'response-mean', 'response-heat-miss', 'dhr', 'cpu', 'lateness'].map((id) => \
         document.getElementById(`chart-${id}`).dataset.shows))]",
    );
    serde_json::from_value(all).unwrap()
}

const WHOLE: &str = "0.5 60.5";

#[test]
fn no_screen_has_console_errors_or_loads_anything_from_the_network() {
    let Some(chromium) = chromium() else { return };
    let mut page = Page::new(&chromium);
    for (story, width, phone, theme) in [
        (Story::Troubled, 1300, false, "light"),
        (Story::Stalled, 390, true, "dark"),
        (Story::Hostile, 390, true, "light"),
        (Story::Nothing, 820, false, "dark"),
    ] {
        let run = synthetic::run(story);
        let url = address(&run);
        page.window(width, 900, phone);
        page.system_theme(theme);
        page.events.clear();
        page.visit(&url);
        assert_eq!(page.complaints(), Vec::<&Value>::new(), "{story:?}");
        assert!(
            page.requests().iter().all(|requested| *requested == url),
            "{story:?}: {:?}",
            page.requests()
        );
        let [wide, shown] = ["document.documentElement.scrollWidth", "innerWidth"].map(|what| page.js(what));
        assert_eq!(wide, shown, "{story:?} scrolls sideways at {width} pixels");
        let nameless = page
            .js("[...document.querySelectorAll('button, a, summary, .plot, [role=region]')].filter((it) => \
             !(it.ariaLabel || it.textContent.trim())).map((it) => it.outerHTML)");
        assert_eq!(nameless, json!([]), "{story:?}: everything has a name");
        let silent =
            page.js("[...document.querySelectorAll('figure.chart[data-drawn=true]')].filter((it) => \
             !it.querySelector('.bars') && !document.getElementById( \
             it.querySelector('.plot').getAttribute('aria-describedby'))?.textContent).map((it) => it.id)");
        assert_eq!(silent, json!([]), "{story:?}: every chart is said in words");
    }
}

#[test]
fn a_drag_across_one_chart_is_followed_by_all_and_a_double_click_shows_everything_again() {
    let Some(chromium) = chromium() else { return };
    let mut page = open(&chromium, &synthetic::run(Story::Good), 1300, false);
    assert_eq!(stretches(&mut page), [WHOLE]);
    let over = "#chart-rate .u-over";
    let (from, to) = (page.place(over, 0.3, 0.5), page.place(over, 0.6, 0.5));
    page.mouse("mouseMoved", from, 0);
    page.mouse("mousePressed", from, 1);
    page.mouse("mouseMoved", ((from.0 + to.0) / 2.0, from.1), 1);
    page.mouse("mouseMoved", to, 1);
    page.mouse("mouseReleased", to, 1);
    page.until("document.documentElement.dataset.zoomed");
    page.until(&format!("document.getElementById('chart-lateness').dataset.shows !== {WHOLE:?}"));
    let zoomed = stretches(&mut page);
    assert_eq!(zoomed.len(), 1, "all charts show the same: {zoomed:?}");
    let ends: Vec<f64> = zoomed[0].split(' ').map(|end| end.parse().unwrap()).collect();
    assert!((18.0..19.0).contains(&ends[0]) && (36.0..37.5).contains(&ends[1]), "{ends:?}");

    // A chart that is drawn anew shows the same stretch.
    page.click("#theme");
    page.until("!document.querySelector('figure.chart:not([data-drawn])')");
    assert_eq!(stretches(&mut page), zoomed);

    let at = page.place("#chart-dhr .u-over", 0.5, 0.5);
    page.mouse("mouseMoved", at, 0);
    for clicks in [1, 2] {
        page.mouse("mousePressed", at, clicks);
        page.mouse("mouseReleased", at, clicks);
    }
    page.until("!document.documentElement.dataset.zoomed");
    page.until(&format!("document.getElementById('chart-lateness').dataset.shows === {WHOLE:?}"));
    assert_eq!(stretches(&mut page), [WHOLE]);
    assert_eq!(page.complaints(), Vec::<&Value>::new());
}

#[test]
fn the_cursor_is_in_all_charts_at_once_and_says_what_is_there() {
    let Some(chromium) = chromium() else { return };
    let mut page = open(&chromium, &synthetic::run(Story::Good), 1300, false);
    let at = page.place("#chart-rate .u-over", 0.4, 0.5);
    page.mouse("mouseMoved", at, 0);
    let legend = |id: &str| format!("document.querySelector('#chart-{id} .u-legend').textContent");
    page.until(&format!("{}.includes('top1')", legend("rate")));
    let values = page.js(&legend("dhr"));
    let values = values.as_str().unwrap();
    assert!(values.contains("24.5 s, top1") && values.contains("measured"), "{values}");
    let spot = page.place("#chart-response-heat-miss .u-over", 0.4, 0.9);
    page.mouse("mouseMoved", spot, 0);
    page.until(
        "document.querySelector('#chart-response-heat-miss .heat-words').textContent.includes('took')",
    );
    assert_eq!(page.complaints(), Vec::<&Value>::new());
}

#[test]
fn downloads_theme_and_commands_work() {
    let Some(chromium) = chromium() else { return };
    let mut page = open(&chromium, &synthetic::run(Story::Troubled), 1300, false);
    page.click("#chart-rate button.csv");
    let rates = page.downloaded();
    assert_eq!(rates.lines().count(), 62, "a line of names and 61 steps");
    assert!(rates.starts_with("time_s,phase,offered (requests/s),responses (requests/s),at the origins"));
    page.click("#load-table button.csv");
    let table = page.downloaded();
    assert!(table.lines().any(|line| line.starts_with("top1,")), "{table}");
    page.click("#chart-response-heat-hit button.csv");
    assert!(page.downloaded().lines().next().unwrap().contains(" ms,"));

    let background = "getComputedStyle(document.body).backgroundColor";
    page.system_theme("light");
    let light = page.js(background);
    page.click("#theme");
    assert_ne!(page.js(background), light);
    page.click("#theme");
    assert_eq!(page.js(background), light);
    page.click("#repeat button.copy");
    page.until("document.querySelector('#repeat button.copy').textContent !== 'Copy'");
    assert_eq!(page.complaints(), Vec::<&Value>::new());
}

#[test]
fn everything_can_be_done_by_keyboard() {
    let Some(chromium) = chromium() else { return };
    let mut page = open(&chromium, &synthetic::run(Story::Good), 1300, false);
    let said = "document.querySelector('[aria-live]').textContent";
    page.js("document.querySelector('#chart-rate .plot').focus()");
    page.key("ArrowRight");
    page.key("ArrowRight");
    page.until(&format!("{said}.includes('1.5 s, warm: offered')"));
    page.key("+");
    page.until("document.documentElement.dataset.zoomed");
    page.until(&format!("document.getElementById('chart-cpu').dataset.shows !== {WHOLE:?}"));
    assert_eq!(stretches(&mut page).len(), 1);
    page.key("Escape");
    page.until("!document.documentElement.dataset.zoomed");
    page.js("document.querySelector('#chart-response-cdf .plot').focus()");
    page.key("ArrowRight");
    page.until(&format!("{said}.includes(' ms: all ')"));
    let theme = page.js("document.documentElement.dataset.theme ?? ''");
    page.key("t");
    assert_ne!(page.js("document.documentElement.dataset.theme"), theme);

    page.js("scrollTo({ top: 0, behavior: 'instant' })");
    page.key("j");
    let first = page.js("document.activeElement.textContent");
    page.key("j");
    let second = page.js("document.activeElement.textContent");
    assert_ne!(first, second, "from section to section");
    page.key("k");
    assert_eq!(page.js("document.activeElement.textContent"), first);

    page.key("?");
    page.until("document.getElementById('keys').open");
    page.key("Escape");
    page.until("!document.getElementById('keys').open");
    page.js("document.querySelector('#chart-rate summary').focus()");
    page.key("Enter");
    page.until("document.querySelector('#chart-rate details').open");
    let cells = page.js("document.querySelectorAll('#chart-rate details tbody tr').length");
    assert_eq!(cells, 10, "nine phases and the whole run");
    assert_eq!(page.complaints(), Vec::<&Value>::new());
}

#[test]
fn a_finger_chooses_a_phase_and_reads_a_chart() {
    let Some(chromium) = chromium() else { return };
    let mut page = open(&chromium, &synthetic::run(Story::Stalled), 390, true);
    page.call("Emulation.setTouchEmulationEnabled", json!({"enabled": true}));
    let tap = |page: &mut Page, selector: &str| {
        let (x, y) = page.place(selector, 0.5, 0.5);
        page.call(
            "Input.dispatchTouchEvent",
            json!({"type": "touchStart", "touchPoints": [{"x": x, "y": y}]}),
        );
        page.call("Input.dispatchTouchEvent", json!({"type": "touchEnd", "touchPoints": []}));
    };
    tap(&mut page, "#zoom button[data-phase='3']");
    page.until("document.querySelector('#zoom button[aria-pressed=true]').textContent === 'top1'");
    assert_eq!(stretches(&mut page), ["19.75 32.75"]);
    tap(&mut page, "#chart-rate .u-over");
    page.until("document.querySelector('#chart-rate .u-legend').textContent.includes('top1 (disturbed)')");
    tap(&mut page, "#see-all");
    page.until("!document.documentElement.dataset.zoomed");
    assert_eq!(page.complaints(), Vec::<&Value>::new());
}

#[test]
fn on_paper_everything_is_light_and_open_and_afterwards_as_it_was() {
    let Some(chromium) = chromium() else { return };
    let mut page = open(&chromium, &synthetic::run(Story::Stalled), 1300, false);
    page.system_theme("dark");
    page.js("addEventListener('beforeprint', () => { document.body.dataset.paper = [ \
             document.documentElement.dataset.theme, document.querySelectorAll('.doubts details[open]').length, \
             document.querySelectorAll('figure.chart:not([data-drawn])').length].join(' '); })");
    let paper = page.call("Page.printToPDF", json!({"printBackground": true}));
    assert!(paper["data"].as_str().is_some_and(|pdf| pdf.len() > 50_000));
    let then = page.js("document.body.dataset.paper");
    let doubts = page.js("document.querySelectorAll('.doubts details').length");
    assert_eq!(then, format!("light {doubts} 0"));
    page.until("document.documentElement.dataset.theme === undefined");
    assert_eq!(page.js("document.querySelectorAll('.doubts details[open]').length"), 0);
    assert_eq!(page.complaints(), Vec::<&Value>::new());
}
