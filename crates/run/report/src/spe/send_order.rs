//! Effect of the order in which a request is sent to proxies.
//!
//! The order of each request is drawn, so every proxy is at every place equally often. What a response took more than its own
//! proxy's mean, and more than the other responses to the same request did, is left to its place and to chance.

use std::collections::BTreeMap;

use assay_record::spe::SpeInfo;

use super::document::OrderPlace;
use super::sections;
use super::tables::EvaluationData;
use crate::figures::round;

/// Microseconds in a millisecond, the other way round.
const MS: f64 = 0.001;

/// Responses at one place.
#[derive(Default)]
struct PlaceSums {
    count: u64,
    sum_us: f64,
    /// Effects of the place, in the order of requests.
    effects_us: Vec<f64>,
}

/// A whole response of a proxy.
struct ProxyResponse {
    place: u8,
    took_us: f64,
    /// The mean of its proxy.
    mean_us: f64,
}

/// The effect of the place in the order of sending.
pub(super) fn places(info: &SpeInfo, data: &EvaluationData) -> Vec<OrderPlace> {
    let means: Vec<Option<f64>> = data.sums.iter().map(|sums| sums.response.mean_us()).collect();
    let requests = data.by_request().map(|samples| {
        let of_proxies = samples.iter().filter(|sample| sample.target > 0);
        let responses = of_proxies.filter_map(|sample| {
            let mean_us = means.get(usize::from(sample.target)).copied().flatten()?;
            Some(ProxyResponse { place: sample.place, took_us: sample.response_us()?, mean_us })
        });
        responses.collect::<Vec<_>>()
    });
    effects(requests, info.turns != "fixed")
}

fn effects(requests: impl Iterator<Item = Vec<ProxyResponse>>, is_drawn: bool) -> Vec<OrderPlace> {
    let mut by_place: BTreeMap<u8, PlaceSums> = BTreeMap::new();
    for responses in requests {
        let beyond = |response: &ProxyResponse| response.took_us - response.mean_us;
        // The requested object takes its time with every proxy, which says nothing about places.
        let common = responses.iter().map(beyond).sum::<f64>() / responses.len().max(1) as f64;
        for response in &responses {
            let at_place = by_place.entry(response.place).or_default();
            at_place.count += 1;
            at_place.sum_us += response.took_us;
            if responses.len() > 1 {
                at_place.effects_us.push(beyond(response) - common);
            }
        }
    }
    let groups: Vec<&[f64]> = by_place.values().map(|at_place| at_place.effects_us.as_slice()).collect();
    let effects = sections::means_together(&groups);
    by_place
        .iter()
        .zip(effects)
        .map(|((place, at_place), effect)| OrderPlace {
            place: *place,
            count: at_place.count,
            mean_ms: round(at_place.sum_us / at_place.count.max(1) as f64 * MS, 4),
            effect_ms: effect.filter(|_| is_drawn).map(|estimate| sections::scaled(estimate, MS, 4)),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::sections::tests::uniform;
    use super::*;

    /// An evaluation of 300 requests, the order of each of which is drawn; the proxy that gets the request first is so much
    /// slower, in the unit of what chance makes of a response.
    fn evaluation(seed: u64, proxies: usize, slower: f64) -> Vec<OrderPlace> {
        let mut random = uniform(seed);
        let mut draw = || random.next().unwrap();
        let mut requests: Vec<Vec<(u8, usize, f64)>> = Vec::new();
        for _ in 0..300 {
            // The requested object takes its time with every proxy, and each proxy has its own.
            let page = -4.0 * libm::log1p(-draw());
            let mut order: Vec<usize> = (0..proxies).collect();
            for last in (1..proxies).rev() {
                order.swap(last, (draw() * (last + 1) as f64) as usize);
            }
            let responses = (0u8..).zip(order).map(|(place, proxy)| {
                let first = if place == 0 { slower } else { 0.0 };
                (place, proxy, page + proxy as f64 - libm::log1p(-draw()) + first)
            });
            requests.push(responses.collect());
        }
        let mut sums = vec![0.0; proxies];
        requests.iter().flatten().for_each(|(_, proxy, took)| sums[*proxy] += took);
        let responses = requests.iter().map(|responses| {
            let of = |&(place, proxy, took_us): &(u8, usize, f64)| ProxyResponse {
                place,
                took_us: took_us / MS,
                mean_us: sums[proxy] / 300.0 / MS,
            };
            responses.iter().map(of).collect()
        });
        effects(responses, true)
    }

    fn is_told(places: &[OrderPlace]) -> bool {
        let mut effects = places.iter().filter_map(|place| place.effect_ms);
        effects.any(|effect| {
            effect.low.is_some_and(|low| low > 0.0) || effect.high.is_some_and(|high| high < 0.0)
        })
    }

    #[test]
    fn a_place_that_does_nothing_is_suspected_in_one_evaluation_of_twenty_at_most() {
        for proxies in [2, 3, 6] {
            let told = (0..300).filter(|seed| is_told(&evaluation(*seed, proxies, 0.0))).count();
            // 15 are expected at most; 27 or more would come by chance in one test of 500.
            assert!(told <= 26, "{told} of 300 with {proxies} proxies");
        }
    }

    #[test]
    fn what_a_place_does_is_found_though_pages_differ_much_more() {
        let found = (0..20).filter(|seed| is_told(&evaluation(*seed, 3, 0.4))).count();
        assert!(found >= 18, "{found} of 20");
        let effect = evaluation(1, 3, 3.0)[0].effect_ms.unwrap().value;
        assert!((1.7..2.3).contains(&effect), "2 of 3 more than the mean of all places: {effect}");
    }

    #[test]
    fn responses_that_are_alone_say_nothing_of_places() {
        let alone = |place| vec![ProxyResponse { place, took_us: 5000.0, mean_us: 1000.0 }];
        let found = effects((0..100).map(|n| alone(n % 2)), true);
        assert_eq!((found.len(), found[0].count, found[0].effect_ms), (2, 50, None));
    }
}
