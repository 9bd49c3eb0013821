//! How origins misbehave on purpose, over real sockets.

use std::io::Read;
use std::time::{Duration, Instant};

use assay_http::head::ResponseHead;
use assay_workload::Fault;
use assay_workload::mark::ResponseNote;
use assay_workload::model::{Distribution, Weighted, Workload};

use super::special_tests::{bytes, lasting, mark, public, xact};
use super::testing::path;
use super::tests::{Client, Running, WrittenResponse, start};

/// Reads until the other side is done: a head, and what came of the body; whether the connection was reset.
fn broken(mut client: Client) -> (Option<WrittenResponse>, bool) {
    let mut read = std::mem::take(&mut client.read);
    let reset = client.stream.read_to_end(&mut read).is_err();
    let response = ResponseHead::parse(&read).expect("is HTTP").map(|(head, length)| WrittenResponse {
        status: head.status,
        persists: head.persists("GET"),
        body: read[length..].to_vec(),
        head: read[..length].to_vec(),
    });
    (response, reset)
}

fn send_get(origins: &Running, path: &str, fields: &str) -> Client {
    let mut client = origins.connect();
    client.send(&format!("GET {path} HTTP/1.1\r\nHost: a.test\r\n{fields}\r\n\r\n"));
    client
}

#[test]
fn a_body_is_broken_off_where_the_response_said() {
    let mut fragile = lasting();
    fragile.servers[0].abort_share = 0.5;
    let origins = start(fragile, 1);
    let whole = bytes(&origins.shared, 1);
    let path = path(&origins.shared, 1);
    let mut cuts = 0;
    for number in 0..20 {
        let abort_after = origins.shared.universe.origin_abort(xact(number), 0, whole.len() as u64);
        let Some(abort_after) = abort_after else {
            assert!(origins.get(&path, &mark(number)).is_object(&origins.shared, 0, 1));
            continue;
        };
        let (response, reset) = broken(send_get(&origins, &path, &mark(number)));
        let response = response.expect("is there");
        assert_eq!(
            (response.status, response.mark().note, reset),
            (200, Some(ResponseNote::BreaksOff(abort_after)), false)
        );
        assert_eq!(response.field("content-length"), Some(&*whole.len().to_string()));
        assert!(response.body == whole[..abort_after as usize] && response.persists);
        cuts += 1;
    }
    assert!(cuts > 3);
    let counts = &origins.stop()[0];
    assert_eq!((counts.broken_off, counts.responses, counts.broken), (cuts, 20 - cuts, 0));
}

/// The first xact that a fault is meant for which this is true of.
fn faulty(origins: &Running, is_wanted: impl Fn(Fault) -> bool) -> u64 {
    let fault = |number: &u64| origins.shared.universe.fault(xact(*number), 0).is_some_and(&is_wanted);
    (0..10_000).find(fault).expect("there is one")
}

fn misbehaving() -> Workload {
    let mut bad = lasting();
    let faults = &mut bad.servers[0].faults;
    faults.error_share = 0.2;
    faults.statuses = Weighted::one(503);
    faults.reset_share = 0.2;
    faults.slow_start_share = 0.2;
    faults.slow_start_s = Distribution::Constant(0.15);
    faults.slow_body_share = 0.2;
    faults.slow_body_bytes_per_s = 40_000.0;
    bad.contents[0].size_bytes = Distribution::Constant(8_000.0);
    bad
}

#[test]
fn what_an_origin_would_think_about_for_too_long_is_reset() {
    let mut slow = lasting();
    slow.servers[0].think_s = Some(Distribution::Uniform { low: 0.0, high: 0.02 });
    slow.servers[0].faults.lifetime_s = Some(Distribution::Constant(0.01));
    let origins = start(slow, 1);
    let path = path(&origins.shared, 1);
    let number = faulty(&origins, |fault| matches!(fault, Fault::Expired(_)));
    assert!(matches!(broken(send_get(&origins, &path, &mark(number))), (None, true)));
    assert!(origins.get(&path, &mark(number)).is_object(&origins.shared, 0, 1), "once");
    let counts = &origins.stop()[0];
    assert_eq!((counts.fault_resets, counts.retried, counts.responses), (1, 1, 1));
}

#[test]
fn faults_are_made_once_and_second_attempts_get_responses() {
    let origins = start(misbehaving(), 2);
    let path = path(&origins.shared, 1);
    let error = faulty(&origins, |fault| fault == Fault::Status(503));
    let response = origins.get(&path, &mark(error));
    assert_eq!(
        (response.status, response.mark().status, response.mark().note),
        (503, 503, Some(ResponseNote::Fault))
    );
    assert_eq!(
        (response.mark().key, response.field("cache-control")),
        (public(&origins.shared, 1).key, Some("no-store"))
    );
    let reset = faulty(&origins, |fault| fault == Fault::Reset);
    assert!(matches!(broken(send_get(&origins, &path, &mark(reset))), (None, true)));
    for number in [error, reset, reset] {
        let again = origins.get(&path, &mark(number));
        assert!(again.is_object(&origins.shared, 0, 1) && again.mark().note.is_none());
    }
    assert!(origins.get(&path, "").is_object(&origins.shared, 0, 1), "nobody meets no fault");
    let counts = &origins.stop()[0];
    assert_eq!((counts.fault_statuses, counts.fault_resets, counts.retried), (1, 1, 3));
    assert_eq!((counts.requests, counts.responses, counts.broken), (6, 5, 0));
}

#[test]
fn slow_responses_take_their_time() {
    let origins = start(misbehaving(), 1);
    let path = path(&origins.shared, 1);
    let late = faulty(&origins, |fault| matches!(fault, Fault::SlowStart(_)));
    let slow = faulty(&origins, |fault| matches!(fault, Fault::SlowBody { .. }));
    for (number, least_ms) in [(late, 150), (slow, 195)] {
        let begun = Instant::now();
        let response = origins.get(&path, &mark(number));
        assert!(begun.elapsed() >= Duration::from_millis(least_ms));
        assert!(response.is_object(&origins.shared, 0, 1));
        assert_eq!(response.mark().note, Some(ResponseNote::Fault));
    }
    let counts = &origins.stop()[0];
    assert_eq!((counts.fault_slow_starts, counts.fault_slow_bodies, counts.responses), (1, 1, 2));
}

/// Requests must come together within 300 ms.
mod real_tests {
    use super::*;

    #[test]
    fn an_origin_slows_down_with_the_requests_under_way() {
        let mut loaded = lasting();
        loaded.servers[0].think_s = Some(Distribution::Constant(0.3));
        loaded.servers[0].faults.delay_per_active_s = 0.1;
        let origins = start(loaded, 1);
        let path = path(&origins.shared, 1);
        let begun = Instant::now();
        let mut clients: Vec<Client> =
            (0..4).map(|number| send_get(&origins, &path, &mark(number))).collect();
        let mut times: Vec<Duration> = clients
            .iter_mut()
            .map(|client| {
                assert!(client.response("GET").is_object(&origins.shared, 0, 1));
                begun.elapsed()
            })
            .collect();
        times.sort();
        assert!(
            times[0] >= Duration::from_millis(300) && times[3] >= Duration::from_millis(600),
            "{times:?}"
        );
        drop(clients);
        // All are done, so the next is alone again.
        let config = origins.shared.configs.get(0).expect("is there");
        assert_eq!(config.delay_ns(), Some(0));
    }
}
