//! Multiplier, Collector and honest proxies, all of them real: whatever the Collector has no room for, none of them is blamed.

use assay_protocol::evaluation::CollectorCounters;
use assay_record::spe::{ResponseRow, Verdict};
use assay_spe::spec::{CollectorSpec, When};

use crate::collector_harness::{UNCACHEABLE, spec};
use crate::evaluation::{Evaluation, body, changing, count};
use crate::multiplier_bed::{Server, ok, run};

/// 1 MB of memory, 12 clients that get 192 KB each, all at once.
async fn crowded(fields: &'static str, rounds: usize) -> (Vec<ResponseRow>, CollectorCounters, usize) {
    const CLIENTS: usize = 12;
    let (origin, gate) = changing(fields, 192 << 10).await;
    let told = CollectorSpec { memory_bytes: 1 << 20, ..spec(origin.address, 1) };
    let mut evaluation = Evaluation::start(told, &origin, When::After, CLIENTS).await;
    for _ in 0..rounds {
        evaluation.round(async || gate.add_permits(1000)).await;
        evaluation.multiplier.responses(evaluation.requested).await;
    }
    let (rows, totals) = evaluation.end().await;
    assert_eq!(rows.len(), rounds * CLIENTS);
    (rows, totals, origin.count())
}

#[test]
fn what_there_is_no_room_for_is_not_compared_and_nothing_is_fetched_twice() {
    run(async {
        let (rows, totals, requested) = crowded(UNCACHEABLE, 25).await;
        assert_eq!(requested, 300, "once for each request");
        let (matching, not_kept) = (count(&rows, 1, Verdict::Ok), count(&rows, 1, Verdict::NotKept));
        assert_eq!(matching + not_kept, 300, "nothing is blamed on the proxy");
        assert!(matching >= 25 * 4, "what there is room for is compared: {matching}");
        assert_eq!((totals.not_kept, totals.repeated), (not_kept as u64, 0));
        assert!(not_kept > 0, "a megabyte holds five of them");
    });
}

#[test]
fn what_caches_may_have_is_fetched_again_for_a_proxy_and_compared_where_it_is_the_same() {
    run(async {
        // Of a quarter of the memory and more, nothing is kept.
        let origin = Server::start(|seen, before| {
            let changes = if seen.line().contains("/changing") { before } else { 0 };
            ok("Cache-Control: max-age=1000\r\n", &body(changes, 300_000))
        })
        .await;
        let told = CollectorSpec { memory_bytes: 1 << 20, ..spec(origin.address, 1) };
        let evaluation = Evaluation::start(told, &origin, When::After, 0).await;
        let mut client = evaluation.multiplier.client().await;
        for (path, requested) in [("/same", 1), ("/changing", 2)] {
            assert_eq!(client.get(path, "").await.status, 200);
            evaluation.multiplier.responses(requested).await;
        }
        drop(client);
        let (rows, totals) = Evaluation { requested: 2, ..evaluation }.end().await;
        let verdicts: Vec<Verdict> = rows.iter().map(|row| row.verdict).collect();
        assert_eq!(verdicts, [Verdict::Ok, Verdict::NotKept]);
        assert_eq!((origin.count(), totals.not_kept, totals.repeated), (4, 2, 2));
    });
}
