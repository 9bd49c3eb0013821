//! What is said of a collector, which may take 3 s for a response.

use assay_record::event::RunEvent;

use crate::serve::collector::{collector, watch_to};

#[test]
fn a_collector_that_takes_what_it_gets_is_not_mentioned() {
    let (url, received) = collector("200 OK");
    let watched = watch_to(&url);
    watched.begin();
    watched.second(10);
    watched.second(20);
    received.recv().unwrap();
    watched.tell(RunEvent::Finished);
    watched.watcher.finish();
    assert!(watched.said.lock().unwrap().is_empty());
}

#[test]
fn a_collector_that_fails_is_mentioned_once_and_tried_again() {
    let (url, received) = collector("503 Service Unavailable");
    let watched = watch_to(&url);
    watched.begin();
    for _ in 0..2 {
        received.recv().unwrap();
    }
    watched.watcher.finish();
    let said = watched.said.lock().unwrap();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("answered 503") && said[0].contains("goes on without"), "{said:?}");
}
