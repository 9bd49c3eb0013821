//! The page of a run that goes on, in a real browser: it takes over what is new, and leaves its reader where he is.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use assay_report::html::{self, Live};
use serde_json::Value;

use crate::browser::chromium;
use crate::devtools::Page;
use crate::synthetic::{self, Story};

/// Serves what is in `page` until the test ends; gives its address.
fn serve(page: Arc<Mutex<String>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { break };
            let mut head = BufReader::new(stream.try_clone().unwrap());
            let mut line = String::new();
            let mut first = String::new();
            while head.read_line(&mut line).is_ok_and(|read| read > 2) {
                if first.is_empty() {
                    first.clone_from(&line);
                }
                line.clear();
            }
            let (status, body) = match first.starts_with("GET / ") {
                true => ("200 OK", page.lock().unwrap().clone()),
                false => ("204 No Content", String::new()),
            };
            let response = format!(
                "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\
                 Connection: close\r\n\r\n{body}",
                body.len()
            );
            let _ = stream.write_all(response.as_bytes());
        }
    });
    address
}

fn state(story: Story, ended: bool) -> String {
    let run = synthetic::run(story);
    html::page(&run.dir, Some(&Live { url: "./".into(), ended })).unwrap()
}

#[test]
fn a_live_page_takes_over_what_is_new_and_leaves_its_reader_where_he_is() {
    let Some(chromium) = chromium() else { return };
    let served = Arc::new(Mutex::new(state(Story::Killed, false)));
    let address = serve(Arc::clone(&served));
    let mut page = Page::new(&chromium);
    page.window(1300, 900, false);
    page.visit(&address);
    page.until("document.getElementById('live').textContent === 'Live'");
    assert_eq!(page.js("document.querySelectorAll('#zoom button').length"), 5, "four phases so far");

    page.click("#theme");
    let theme = page.js("document.documentElement.dataset.theme");
    page.click("#zoom button[data-phase='1']");
    page.until("document.documentElement.dataset.zoomed");
    page.js("document.querySelector('#chart-rate summary').click()");
    page.js("document.documentElement.style.scrollBehavior = 'auto'; \
             document.querySelector('#chart-response-p50').scrollIntoView()");
    page.js("document.querySelector('#chart-response-p50 .plot').focus({ preventScroll: true })");
    page.key("ArrowRight");
    let top = page.js("document.querySelector('#chart-response-p50').getBoundingClientRect().top");
    let shows = page.js("document.querySelector('#chart-response-p50').dataset.shows");

    *served.lock().unwrap() = state(Story::Good, true);
    page.until("document.documentElement.dataset.ended");
    page.until("document.getElementById('live').textContent === 'The run has ended'");
    assert_eq!(page.js("document.querySelectorAll('#zoom button').length"), 10, "nine phases in the end");
    assert!(page.js("document.body.textContent").as_str().unwrap().contains("How well is it known?"));
    assert!(
        !page.js("document.querySelector('main').textContent").as_str().unwrap().contains("Still running.")
    );

    assert_eq!(page.js("document.documentElement.dataset.theme"), theme);
    assert_eq!(page.js("document.activeElement.closest('figure')?.id"), "chart-response-p50", "focus");
    assert_eq!(page.js("document.querySelector('#chart-rate details').open"), true);
    page.until("document.querySelector('#chart-response-p50').dataset.shows");
    assert_eq!(page.js("document.querySelector('#chart-response-p50').dataset.shows"), shows, "zoom");
    let now = page.js("document.querySelector('#chart-response-p50').getBoundingClientRect().top");
    let moved = now.as_f64().unwrap() - top.as_f64().unwrap();
    assert!(moved.abs() < 1.0, "it moved by {moved} pixels under the reader's eyes");

    let requested = page.requests().len();
    page.key("Escape");
    page.until("!document.documentElement.dataset.zoomed");
    page.until("document.getElementById('chart-rate').dataset.shows === '0.5 60.5'");
    assert_eq!(page.requests().len(), requested, "an ended run is not requested again");
    assert_eq!(page.complaints(), Vec::<&Value>::new());
}
