//! Requests with meanings, for tests of all that plays them.

use assay_cache::ideal::RequestClass as CacheRequest;

use crate::size::http::{AS_ALL_MS, FOREVER_S, Http, RequestSemantics};
use crate::size::requests::{RequestCollector, Requests, Sizes};
use crate::size::sample::Sampling;
use assay_cache::behaviour::CacheBehaviour;

/// Requests at seconds, of objects of ten bytes.
pub(crate) fn requests(behaviour: CacheBehaviour, list: &[(u64, i64, RequestSemantics)]) -> Requests {
    let mut collector = RequestCollector::new(Sizes::Within(0), Sampling::default());
    collector.set_http(Http::new(behaviour));
    for (key, at_s, semantics) in list {
        assert!(collector.add_with_semantics(*key, 10, Some(*at_s), *semantics));
    }
    collector.finish()
}

/// A request: object, seconds since the last one, lifetime, whether the version rises, kind.
pub(crate) type Draw = (u64, u8, u32, bool, usize);

pub(crate) fn any_requests() -> impl proptest::strategy::Strategy<Value = Vec<Draw>> {
    use proptest::prelude::*;
    proptest::collection::vec((0u64..12, 0u8..3, 0u32..8, any::<bool>(), 0usize..10), 1..200)
}

pub(crate) fn draw(list: &[Draw]) -> Vec<(u64, i64, RequestSemantics)> {
    let kinds = [
        CacheRequest::Head,
        CacheRequest::ConditionalChanged,
        CacheRequest::ConditionalUnchanged,
        CacheRequest::Reload,
        CacheRequest::Range,
        CacheRequest::Post,
    ];
    let (mut at_s, mut versions) = (0, [0u32; 12]);
    let meant = |&(key, later, life_s, rises, kind): &Draw| {
        at_s += i64::from(later);
        versions[key as usize] += u32::from(rises);
        let kind = kinds.get(kind).copied();
        let semantics = RequestSemantics {
            life_s: if life_s == 7 { FOREVER_S } else { life_s },
            version: versions[key as usize],
            takes_ms: AS_ALL_MS,
            ms: 0,
            kind: kind.unwrap_or(CacheRequest::Get),
            is_counted: kind.is_none(),
        };
        (key, at_s, semantics)
    };
    list.iter().map(meant).collect()
}

pub(crate) fn gathered(behaviour: CacheBehaviour, list: &[Draw]) -> Requests {
    requests(behaviour, &draw(list))
}
