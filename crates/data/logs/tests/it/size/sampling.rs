//! Sampling: whether the true curve lies within the stated band.

use assay_base::random::{Rng, mix};
use assay_cache::policy::Admission;
use assay_cache::policy::replacement::Replacement;
use assay_logs::size::curve::{CurvePlan, Curves, curves};
use assay_logs::size::group_by::GroupBy;
use assay_logs::size::policy::Policy;
use assay_logs::size::requests::{RequestCollector, Requests, Sizes};
use assay_logs::size::sample::{SampleSize, Sampling};
use assay_logs::size::simulate::HitCounts;

/// Objects by Zipf's law, with sizes from 500 bytes to 32 KB, most of them small.
fn zipf(requests: usize, objects: usize, exponent: f64) -> Vec<(u64, u64)> {
    let mut sums = Vec::with_capacity(objects);
    let mut sum = 0.0;
    for rank in 1..=objects {
        sum += (rank as f64).powf(-exponent);
        sums.push(sum);
    }
    let mut rng = Rng::new(11);
    let mut object = || {
        let drawn = rng.unit() * sum;
        sums.partition_point(|sum| *sum < drawn) as u64
    };
    let bytes = |object: u64| 500 << (mix(object).leading_zeros().min(6));
    (0..requests).map(|_| object()).map(|object| (object, bytes(object) + object % 97)).collect()
}

fn gathered(trace: &[(u64, u64)], take: SampleSize, seed: u64) -> Requests {
    let mut collector = RequestCollector::new(Sizes::Within(0), Sampling { take, seed });
    for (number, (key, bytes)) in trace.iter().enumerate() {
        match number % 50 {
            0 => collector.add_uncachable(900, None),
            _ => assert!(collector.add_whole(*key, *bytes, None)),
        }
    }
    collector.finish()
}

const SIZES: [u64; 5] = [1_800_000, 5 << 19, 4 << 20, 8 << 20, 1 << 26];

fn simulated(requests: &Requests, policies: &[Policy]) -> Curves {
    curves(requests, &CurvePlan { policies, sizes: &SIZES, warm_up: 0.1, admission: Admission::All })
}

/// Every value of the true curve is within the band.
fn is_within(found: &Curves, truth: &Curves, curve: usize, of: fn(&HitCounts) -> Option<f64>) -> bool {
    let halves = found.band(&found.curves[curve], of).expect("a band");
    let points = found.curves[curve].points.iter().zip(&truth.curves[curve].points).zip(halves);
    points.into_iter().all(|((found, truth), half)| {
        (of(&found.estimate.counts).unwrap() - of(&truth.estimate.counts).unwrap()).abs() <= half
    })
}

/// In how many of 100 samples the band contains the true curves of LRU and FIFO, of documents and of bytes.
fn within(trace: &[(u64, u64)]) -> [[u32; 2]; 2] {
    let policies = [Policy::LRU, Policy::FIFO];
    let truth = simulated(&gathered(trace, SampleSize::All, 0), &policies);
    let mut within = [[0; 2]; 2];
    for seed in 0..100 {
        let sample = gathered(trace, SampleSize::Share(0.1), seed);
        let (documents, bytes) = sample.smallest_known(Admission::All);
        assert!(documents.max(bytes) <= SIZES[0], "{documents} {bytes}");
        let found = simulated(&sample, &policies);
        for (curve, within) in within.iter_mut().enumerate() {
            within[0] += u32::from(is_within(&found, &truth, curve, HitCounts::dhr));
            within[1] += u32::from(is_within(&found, &truth, curve, HitCounts::bhr));
        }
    }
    within
}

#[test]
fn the_true_curve_lies_within_the_band_in_94_of_100_samples() {
    let within = within(&zipf(15_000, 3_000, 0.8));
    assert!(within.iter().flatten().all(|within| *within >= 94), "{within:?}");
}

#[test]
fn it_does_where_a_few_objects_have_most_of_the_bytes() {
    let mut trace = zipf(15_000, 3_000, 0.8);
    for (key, bytes) in &mut trace {
        if mix(*key ^ 7).is_multiple_of(300) {
            *bytes *= 100;
        }
    }
    let within = within(&trace);
    assert!(within.iter().flatten().all(|within| *within >= 94), "{within:?}");
}

#[test]
fn figures_of_the_whole_input_are_exact_in_a_sample() {
    let trace = zipf(30_000, 9_000, 0.8);
    let all = gathered(&trace, SampleSize::All, 0);
    let sample = gathered(&trace, SampleSize::Share(0.2), 3);
    let [of_all, of_sample] = [&all, &sample].map(|requests| simulated(requests, &[Policy::LRU]));
    let [all_counts, counts] = [&of_all, &of_sample].map(|found| found.infinite.counts);
    assert_eq!(
        (counts.requests, counts.bytes),
        (all_counts.requests, all_counts.bytes),
        "after the warm-up too"
    );
    assert_eq!([of_all.warm_up, of_sample.warm_up], [3000; 2]);
    assert_eq!((sample.read(), sample.uncachable, sample.largest_bytes), (30_000, 600, all.largest_bytes));
    let drawn = sample.drawn_objects();
    assert!(drawn.abs_diff(all.objects / 5) < 200, "{drawn} of {}", all.objects);
    // The largest objects are in it too, each of which stands for itself.
    assert!(sample.objects > drawn && sample.objects <= drawn + drawn / 2, "{} and {drawn}", sample.objects);
    assert!(sample.all_objects().abs_diff(all.objects as u64) < 500, "{}", sample.all_objects());
    assert_eq!(sample.rate(), 0.2f64.mul_add(4_294_967_296.0, 0.0).floor() / 4_294_967_296.0);
}

/// The sizes of the objects of those requests of a sample that are for large objects, or for others.
fn kept(requests: &Requests, is_large: bool) -> Vec<u64> {
    let list = requests.list.iter().enumerate();
    list.filter(|(number, _)| requests.is_large(*number) == is_large)
        .map(|(_, request)| request.bytes)
        .collect()
}

#[test]
fn a_sample_of_a_number_of_objects_is_the_one_that_its_rate_would_have_drawn() {
    let trace = zipf(30_000, 9_000, 0.8);
    let by_number = gathered(&trace, SampleSize::Objects(1500), 5);
    assert!((1200..=1500).contains(&by_number.objects), "{}", by_number.objects);
    let by_rate = gathered(&trace, SampleSize::Share(by_number.rate()), 5);
    // Until the first objects went, requests that no cache may serve were in the list.
    assert_eq!(by_number.drawn_objects(), by_rate.drawn_objects());
    // From which size on objects are large depends on what was known when they became too many.
    let from = [&by_number, &by_rate].map(|sample| *kept(sample, true).iter().min().unwrap());
    let [below, above] = [from[0].min(from[1]), from[0].max(from[1])];
    let others = |sample: &Requests| -> Vec<u64> {
        let small = kept(sample, false).into_iter().filter(|bytes| *bytes < below);
        small.chain(kept(sample, true).into_iter().filter(|bytes| *bytes >= above)).collect()
    };
    assert_eq!(others(&by_number), others(&by_rate));
    assert_eq!(by_number.size_changes, 0);
    let policies = [Policy::LRU, Policy::Online(Replacement::Gdsf)];
    let [by_number, by_rate] = [&by_number, &by_rate].map(|requests| simulated(requests, &policies));
    for (one, other) in by_number.curves.iter().zip(&by_rate.curves) {
        for (one, other) in one.points.iter().zip(&other.points) {
            let apart = one.estimate.counts.dhr().unwrap() - other.estimate.counts.dhr().unwrap();
            assert!(apart.abs() < 0.03, "{one:?} {other:?}");
        }
    }
    let enough = gathered(&trace, SampleSize::Objects(100_000), 5);
    assert!(enough.sampled.is_none() && enough.list.len() == 30_000);
}

/// The same requests with a label: the remainder of the object, and one for what no cache may serve.
fn labelled(trace: &[(u64, u64)], take: SampleSize) -> Requests {
    let mut collector = RequestCollector::new(Sizes::Within(0), Sampling { take, seed: 2 });
    collector.set_labels(GroupBy::Host);
    for (number, (key, bytes)) in trace.iter().enumerate() {
        if number % 50 == 0 {
            collector.add_uncachable(900, None);
            collector.set_label(b"api");
        } else {
            assert!(collector.add_whole(*key, *bytes, None));
            collector.set_label(if *key % 3 == 0 { b"a" } else { b"b" });
        }
    }
    collector.finish()
}

#[test]
fn figures_by_label_add_up_however_they_are_computed_and_a_sample_is_near_them() {
    let trace = zipf(60_000, 12_000, 0.8);
    let policies = [Policy::LRU, Policy::Online(Replacement::Sieve)];
    let all = simulated(&labelled(&trace, SampleSize::All), &policies);
    let plain = simulated(&gathered(&trace, SampleSize::All, 0), &policies);
    let sample = simulated(&labelled(&trace, SampleSize::Share(0.3)), &policies);
    for (curve, other) in all.curves.iter().zip(&sample.curves) {
        for (point, sampled) in curve.points.iter().zip(&other.points) {
            let by = &point.estimate.by;
            let sum = |of: fn(&HitCounts) -> u64| by.iter().map(of).sum::<u64>();
            let whole = point.estimate.counts;
            assert_eq!(
                [sum(|c| c.requests), sum(|c| c.hits), sum(|c| c.hit_bytes)],
                [whole.requests, whole.hits, whole.hit_bytes]
            );
            // Labels do not change what is simulated.
            let same = plain.curves.iter().find(|plain| plain.policy == curve.policy).unwrap();
            assert!(same.points.iter().any(|same| same.estimate.counts == whole));
            assert_eq!((by.len(), by[2].hits, by[2].requests), (3, 0, 1080));
            for (truth, found) in by.iter().zip(&sampled.estimate.by) {
                let apart = (truth.dhr().unwrap() - found.dhr().unwrap()).abs();
                assert!(apart < 0.05, "{truth:?} {found:?}");
                assert!(truth.requests.abs_diff(found.requests) < truth.requests / 5, "{truth:?} {found:?}");
            }
        }
    }
}

#[test]
fn sizes_whose_part_cannot_hold_the_larger_objects_are_not_known() {
    let trace = zipf(60_000, 12_000, 0.8);
    let sample = gathered(&trace, SampleSize::Share(0.1), 1);
    let (documents, bytes) = sample.smallest_known(Admission::All);
    // Drawn objects are of less than the largest size, whose objects are all in the sample: a tenth of the cache must hold ten of them.
    let largest = |is_large| *kept(&sample, is_large).iter().max().unwrap();
    assert_eq!(largest(true), sample.largest_bytes);
    assert!(
        (largest(false)..sample.largest_bytes).contains(&(documents / 100)),
        "{documents} {}",
        largest(false)
    );
    assert!(bytes >= documents, "{bytes}");
    assert_eq!(gathered(&trace, SampleSize::All, 1).smallest_known(Admission::All), (0, 0));
}

#[test]
fn with_admission_by_size_the_smallest_known_size_has_room_for_what_is_admitted_and_nothing_else() {
    let trace = zipf(60_000, 12_000, 0.8);
    let sample = gathered(&trace, SampleSize::Share(0.1), 1);
    let known = |admission| sample.smallest_known(admission).0;
    // Ten drawn objects of the largest size that is admitted, each of which takes the room of ten, but for a thousandth of the requests.
    let small = known(Admission::UpTo(1024));
    assert!((50_000..=102_500).contains(&small), "{small}");
    assert!(small < known(Admission::All));
    // Large objects that are admitted are drawn like all others then, and take the room of ten each.
    let everything = known(Admission::UpTo(u64::MAX));
    let from = *kept(&sample, true).iter().min().unwrap();
    assert!(everything > 100 * from && everything > known(Admission::All), "{everything} {from}");
}

#[test]
fn what_is_admitted_by_its_size_is_the_same_in_a_sample() {
    let trace = zipf(60_000, 12_000, 0.8);
    let plan = CurvePlan {
        policies: &[Policy::FIFO],
        sizes: &SIZES[2..],
        warm_up: 0.1,
        admission: Admission::UpTo(4096),
    };
    let truth = curves(&gathered(&trace, SampleSize::All, 0), &plan);
    let everything = simulated(&gathered(&trace, SampleSize::All, 0), &[Policy::FIFO]);
    let mut within = 0;
    for seed in 0..10 {
        let found = curves(&gathered(&trace, SampleSize::Share(0.2), seed), &plan);
        within += u32::from(is_within(&found, &truth, 0, HitCounts::dhr));
    }
    assert!(within >= 8, "{within}");
    // It makes a difference: the largest objects are never stored.
    let last = |found: &Curves| found.curves[0].points.last().unwrap().estimate.counts.hits;
    assert!(last(&truth) < last(&everything) * 95 / 100);
}
