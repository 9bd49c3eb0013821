//! Replacement and admission: the proxy hits what a simulation of the same policy hits, and stores what its rule admits.

use assay_cache::policy::LookupResult;
use assay_cache::policy::replacement::Replacement;
use assay_cache::policy::tinylfu::TinyLfu;
use assay_cache::policy::{Admission, EvictionPolicy, Store};
use assay_proxy::spec::Storing;

use crate::harness::{Bed, Origin, ok, run};

const FRESH: &str = "Cache-Control: max-age=60\r\n";
/// Long beside what the proxy needs for an object, so that room is made for one at a time.
const BODY_BYTES: usize = 50_000;
/// Objects that there is room for.
const ROOM: u64 = 8;

/// Requests for 24 objects, a few of them popular, with a scan in the middle.
fn requests() -> Vec<u32> {
    let skewed = |number: u64| {
        let drawn = assay_base::random::mix(number) % 1000;
        (drawn * drawn * 24 / 1_000_000) as u32
    };
    (0..250).map(skewed).chain(100..120).chain((1000..1150).map(skewed)).collect()
}

async fn origin() -> Origin {
    Origin::start(|_, _| ok(FRESH, &"x".repeat(BODY_BYTES))).await
}

/// Which of the requests the proxy hits, and what it takes for one object.
async fn measured(storing: Storing) -> (Vec<bool>, u64) {
    let origin = origin().await;
    let bed = Bed::storing(&[("a", origin.address)], memory_bytes(), storing);
    let mut client = bed.client().await;
    let (mut hits, mut weight) = (Vec::new(), 0);
    for object in requests() {
        let response = client.get(&format!("/{object:03}"), "").await;
        assert_eq!(response.body().len(), BODY_BYTES);
        hits.push(response.cache_status().contains("hit"));
        let counters = bed.counters();
        assert!(counters.stored_bytes <= memory_bytes() && counters.objects <= ROOM);
        weight = counters.stored_bytes / counters.objects.max(1);
    }
    (hits, weight)
}

fn memory_bytes() -> u64 {
    ROOM * (BODY_BYTES as u64 + 4000)
}

fn simulated<O: EvictionPolicy>(order: O, weight: u64) -> Vec<bool> {
    let mut store = Store::new(order, memory_bytes(), 120);
    requests().iter().map(|object| store.request(*object, weight) == LookupResult::Hit).collect()
}

fn differences(a: &[bool], b: &[bool]) -> usize {
    a.iter().zip(b).filter(|(a, b)| a != b).count()
}

#[test]
fn each_policy_hits_what_its_simulation_hits() {
    run(async {
        for (policy, name) in Replacement::ALL {
            let (measured, weight) = measured(Storing { policy, ..Storing::default() }).await;
            let simulated = simulated(policy.order(memory_bytes(), 120), weight);
            let count = |hits: &[bool]| hits.iter().filter(|is_hit| **is_hit).count();
            let hits = [&measured, &simulated].map(|hits| count(hits));
            assert!(hits[0] > 100, "{name}: {hits:?}");
            // Room is made before the policy learns which object comes: of those that remember objects, the one that it remembered
            // longest may be forgotten for that, and GDSF gives it a rank when its age has grown already. W-TinyLFU counts in a
            // sketch, with halvings of its own.
            let is_near = ["s3-fifo", "2q", "arc", "gdsf", "w-tinylfu"].contains(&name);
            let most = if is_near { 10 } else { 0 };
            let differ = differences(&measured, &simulated);
            assert!(differ * 100 <= most * measured.len(), "{name}: {differ} of {} differ", measured.len());
            assert!(hits[0].abs_diff(hits[1]) * 100 <= most * hits[1], "{name}: {hits:?}");
        }
    });
}

#[test]
fn policies_differ() {
    run(async {
        let of = async |policy| measured(Storing { policy, ..Storing::default() }).await.0;
        let (lru, lfu) = (of(Replacement::Lru).await, of(Replacement::Lfu).await);
        assert!(differences(&lru, &lfu) > 10);
    });
}

#[test]
fn tinylfu_lets_a_scan_pass_by_as_its_simulation_does() {
    run(async {
        let storing =
            Storing { policy: Replacement::Lru, admission: Admission::TinyLfu, ..Storing::default() };
        let (filtered, weight) = measured(storing).await;
        let order = TinyLfu::new(Replacement::Lru.order(memory_bytes(), 120), 120);
        let differ = differences(&filtered, &simulated(order, weight));
        assert!(differ <= requests().len() / 10, "{differ} of {}", filtered.len());
        let count = |hits: &[bool]| hits.iter().filter(|is_hit| **is_hit).count();
        let all = measured(Storing::default()).await.0;
        assert!(count(&filtered) > count(&all) + 10, "{} {}", count(&filtered), count(&all));
    });
}

#[test]
fn admission_by_size_and_by_second_request_decide_what_is_stored() {
    run(async {
        let origin =
            Origin::start(|seen, _| ok(FRESH, if seen.line().contains("large") { "12345" } else { "1234" }))
                .await;
        let start = |admission| {
            let storing = Storing { admission, ..Storing::default() };
            Bed::storing(&[("a", origin.address)], 1_000_000, storing)
        };
        let statuses = async |bed: &Bed, path: &str| {
            let mut client = bed.client().await;
            let mut all = Vec::new();
            for _ in 0..3 {
                let response = client.get(path, "").await;
                all.push(response.cache_status().contains("hit"));
            }
            all
        };
        let small = start(Admission::UpTo(4));
        assert_eq!(statuses(&small, "/small").await, [false, true, true]);
        assert_eq!(statuses(&small, "/large").await, [false; 3]);
        let second = start(Admission::SecondRequest);
        assert_eq!(statuses(&second, "/small").await, [false, false, true]);
    });
}
