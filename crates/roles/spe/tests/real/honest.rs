//! Multiplier, Collector and honest proxies with many clients: none of them is blamed.

use assay_record::spe::Verdict;
use assay_spe::spec::When;

use crate::collector_harness::{UNCACHEABLE, spec};
use crate::evaluation::{Evaluation, changing, count};
use crate::multiplier_bed::{Server, ok, run, until};

#[test]
fn more_clients_than_ever_at_one_url_that_changes_and_an_honest_proxy_matches_every_time() {
    const CLIENTS: usize = 300;
    const ROUNDS: usize = 4;
    run(async {
        let (origin, gate) = changing(UNCACHEABLE, 8).await;
        let told = spec(origin.address, 1);
        let mut evaluation = Evaluation::start(told, &origin, When::After, CLIENTS).await;
        for _ in 0..ROUNDS {
            let is_there = async || {
                // What is there so far cannot be shared, so that each has a fetch of its own, all of them at once.
                until(|| origin.count() >= CLIENTS).await;
                gate.add_permits(10 * CLIENTS);
            };
            evaluation.round(is_there).await;
        }
        let (rows, totals) = evaluation.end().await;
        assert_eq!(rows.len(), CLIENTS * ROUNDS);
        assert_eq!(count(&rows, 1, Verdict::Ok), CLIENTS * ROUNDS);
        assert_eq!(origin.count(), CLIENTS * ROUNDS, "once for each request");
        assert_eq!((totals.not_kept, totals.repeated), (0, 0));
    });
}

#[test]
fn in_whatever_order_responses_end_each_proxy_is_held_against_its_own_clients() {
    const CLIENTS: usize = 24;
    run(async {
        for when in [When::After, When::AtOnce] {
            // The later a request comes, the sooner its response comes.
            let origin = Server::start(|_, before| {
                let pause = assay_testbed::pause_ms(40 - 10 * (before as u64 % 5));
                [vec![pause], ok(UNCACHEABLE, &format!("answer {before}"))].concat()
            })
            .await;
            let told = spec(origin.address, 2);
            let mut evaluation = Evaluation::start(told, &origin, when, CLIENTS).await;
            for _ in 0..5 {
                evaluation.round(async || ()).await;
            }
            let (rows, totals) = evaluation.end().await;
            for target in [1, 2] {
                assert_eq!(count(&rows, target, Verdict::Ok), 5 * CLIENTS, "{when:?}");
            }
            assert_eq!(origin.count(), 5 * CLIENTS, "{when:?}");
            assert_eq!(totals.not_kept, 0);
        }
    });
}
