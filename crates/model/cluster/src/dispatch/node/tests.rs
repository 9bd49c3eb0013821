use proptest::prelude::*;

use super::*;

fn work(processor_s: f64, disk_s: f64) -> Work {
    Work { processor_s, disk_s, document: None }
}

/// Lets everything finish; gives keys and seconds.
fn run(node: &mut Node<u64>) -> Vec<(u64, f64)> {
    let mut all = Vec::new();
    while let Some(next) = node.next_event() {
        let mut done = Vec::new();
        node.advance(next, &mut done);
        all.extend(done.into_iter().map(|key| (key, (next.secs() * 1e6).round() / 1e6)));
    }
    all
}

fn arrive(node: &mut Node<u64>, key: u64, work: Work, at_s: f64) -> Vec<u64> {
    let mut done = Vec::new();
    node.arrive(key, work, Moment::from_secs(at_s), &mut done).unwrap();
    done
}

#[test]
fn processor_time_comes_before_disk_time_and_disks_serve_one_at_a_time() {
    let mut node = Node::new(NodeSpec { processors: 2, ..NodeSpec::default() });
    arrive(&mut node, 1, work(0.09, 0.01), 0.0);
    arrive(&mut node, 2, work(0.09, 0.01), 0.0);
    assert_eq!(run(&mut node), [(1, 0.1), (2, 0.11)]);
    let busy = node.busy(Moment::from_secs(0.2));
    assert!((busy.processor_s - 0.18).abs() < 1e-6 && (busy.disk_s - 0.02).abs() < 1e-6, "{busy:?}");
}

#[test]
fn a_document_is_read_once_and_again_when_memory_was_too_small() {
    let spec =
        NodeSpec { memory_bytes: 1500, disk_seek_s: 0.01, disk_bytes_per_s: 1e5, ..NodeSpec::default() };
    let mut node = Node::new(spec);
    let read = |document| Work { processor_s: 0.0, disk_s: 0.0, document: Some((document, 1000)) };
    arrive(&mut node, 1, read(7), 0.0);
    assert_eq!(run(&mut node), [(1, 0.02)]);
    assert_eq!(node.reads(), 1);
    arrive(&mut node, 2, read(7), 1.0);
    run(&mut node);
    assert_eq!(node.reads(), 1, "it is in memory");
    arrive(&mut node, 3, read(8), 2.0);
    arrive(&mut node, 4, read(7), 3.0);
    run(&mut node);
    assert_eq!(node.reads(), 3, "each drives the other out");
}

#[test]
fn a_document_needs_memory_for_its_bytes_and_128_more() {
    let reads = |memory_bytes| {
        let mut node = Node::new(NodeSpec { memory_bytes, ..NodeSpec::default() });
        // Ten documents of 1,000 bytes, twice over.
        for number in 0..20 {
            let work = Work { processor_s: 0.0, disk_s: 0.0, document: Some((number % 10, 1000)) };
            arrive(&mut node, number, work, number as f64);
            run(&mut node);
        }
        node.reads()
    };
    assert_eq!(reads(10 * (1000 + 128)), 10, "all of them fit");
    assert_eq!(
        reads(10 * (1000 + 128) - 1),
        20,
        "one does not: each drives out the one that is requested next"
    );
}

#[test]
fn with_one_worker_requests_are_served_in_order_and_too_many_are_refused() {
    let spec = NodeSpec { workers: Some(1), queue: Some(1), ..NodeSpec::default() };
    let mut node = Node::new(spec);
    arrive(&mut node, 1, work(1.0, 0.0), 0.0);
    arrive(&mut node, 2, work(0.1, 0.0), 0.0);
    let refused = node.arrive(3, work(0.1, 0.0), Moment::START, &mut Vec::new());
    assert_eq!(refused, Err(QueueFull { workers: 1, queue: 1 }));
    assert_eq!(run(&mut node), [(1, 1.0), (2, 1.1)]);
}

#[test]
fn time_that_has_passed_unseen_is_caught_up_with() {
    let mut node = Node::new(NodeSpec::default());
    arrive(&mut node, 1, work(0.1, 0.0), 0.0);
    assert_eq!(arrive(&mut node, 2, work(0.1, 0.0), 5.0), [1], "it was done long before");
    assert_eq!(run(&mut node), [(2, 5.1)]);
}

#[test]
fn a_node_that_fails_loses_what_it_has_and_begins_again() {
    let mut node = Node::new(NodeSpec::default());
    arrive(&mut node, 2, work(1.0, 0.0), 0.0);
    arrive(&mut node, 1, work(0.0, 1.0), 0.0);
    assert_eq!(node.fail(Moment::from_secs(0.5)), [1, 2]);
    assert_eq!((node.in_flight(), node.next_event()), (0, None));
    arrive(&mut node, 3, work(0.5, 0.0), 1.0);
    assert_eq!(run(&mut node), [(3, 1.5)]);
}

#[test]
fn it_says_how_busy_it_was_and_how_long_a_request_takes() {
    let mut node = Node::new(NodeSpec { processors: 2, ..NodeSpec::default() });
    arrive(&mut node, 1, work(1.0, 0.0), 0.0);
    run(&mut node);
    let state = node.state(Moment::from_secs(2.0), Moment::START, BusyTime::default());
    assert!((state.processor - 0.25).abs() < 1e-9, "{state:?}");
    assert_eq!(state.latency_nanos, Some(1_000_000_000));
}

proptest! {
    #[test]
    fn every_request_that_came_is_done_once_or_was_lost(
        processors in 1u32..4, workers in proptest::option::of(1u32..5),
        jobs in proptest::collection::vec((0.0f64..0.2, 0.0f64..0.05, 0.0f64..0.1, 0u64..9), 1..60),
        fails_after in proptest::option::of(0usize..60),
    ) {
        let mut node = Node::new(NodeSpec { processors, workers, memory_bytes: 4000, ..NodeSpec::default() });
        let (mut now, mut done) = (Moment::START, Vec::new());
        for (number, (processor_s, disk_s, gap_s, document)) in jobs.iter().enumerate() {
            now = now.plus_secs(*gap_s);
            let document = (*document > 3).then_some((*document, 900));
            let work = Work { processor_s: *processor_s, disk_s: *disk_s, document };
            node.arrive(number as u64, work, now, &mut done).unwrap();
            if fails_after == Some(number) {
                done.extend(node.fail(now));
            }
        }
        while let Some(next) = node.next_event() {
            node.advance(next, &mut done);
        }
        prop_assert_eq!(node.in_flight(), 0);
        done.sort_unstable();
        prop_assert_eq!(done, (0..jobs.len() as u64).collect::<Vec<_>>());
    }
}
