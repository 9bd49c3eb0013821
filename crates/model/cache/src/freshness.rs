//! The age of a stored response, how long it is fresh, and whether it may be reused for a request (RFC 9111, 4.2 and 5.2).
//!
//! Instants are Unix time in milliseconds; values of HTTP fields are whole seconds. The only heuristic is one default lifetime for all
//! responses without an explicit one. Zero is allowed: such a response is revalidated for each request.

/// Cap of every delta-seconds value (RFC 9111, 1.2.2).
const MAX_DELTA_S: u64 = 1 << 31;

/// `Expires` of a response.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Expires {
    /// Not there.
    #[default]
    Absent,
    /// Not a date (`0` is usual): already expired (RFC 9111, 5.3).
    Invalid,
    /// A date, in Unix seconds.
    At(i64),
}

/// Directives of `Cache-Control` in a response that concern a shared cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ResponseControl {
    /// `max-age`, in seconds.
    pub max_age_s: Option<u64>,
    /// `s-maxage`, in seconds.
    pub s_maxage_s: Option<u64>,
    /// `no-store`.
    pub no_store: bool,
    /// `no-cache`.
    pub no_cache: bool,
    /// `private`.
    pub private: bool,
    /// `public`.
    pub public: bool,
    /// `must-revalidate`.
    pub must_revalidate: bool,
    /// `proxy-revalidate`.
    pub proxy_revalidate: bool,
    /// `stale-if-error`, in seconds (RFC 5861).
    pub stale_if_error_s: Option<u64>,
    /// `stale-while-revalidate`, in seconds (RFC 5861).
    pub stale_while_revalidate_s: Option<u64>,
}

/// `max-stale` of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaxStale {
    Any,
    /// Up to this staleness.
    Seconds(u64),
}

/// `Cache-Control` of a request (`Pragma: no-cache` counts as `no-cache` where there is no `Cache-Control`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RequestControl {
    /// `no-cache`: the origin must confirm the response.
    pub no_cache: bool,
    /// `no-store`: the response must not be kept.
    pub no_store: bool,
    /// `only-if-cached`: the request must not go to the origin.
    pub only_if_cached: bool,
    /// `max-age`, in seconds.
    pub max_age_s: Option<u64>,
    /// `min-fresh`, in seconds.
    pub min_fresh_s: Option<u64>,
    /// `max-stale`.
    pub max_stale: Option<MaxStale>,
    /// `stale-if-error`, in seconds (RFC 5861).
    pub stale_if_error_s: Option<u64>,
}

/// Metadata of a response that decide on its age, lifetime and storing; the caller takes them out of the head.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ResponseFacts {
    pub status: u16,
    /// `Date`, in Unix seconds.
    pub date_s: Option<i64>,
    /// `Age`, in seconds; zero when there is none.
    pub age_s: u64,
    /// `Expires`.
    pub expires: Expires,
    /// True with an `ETag` or a `Last-Modified`, by which the origin can confirm the response.
    pub has_validator: bool,
    /// `Cache-Control`.
    pub control: ResponseControl,
    /// Lifetime in seconds if the response states none.
    pub default_lifetime_s: u64,
}

/// Whether a stored response may be reused for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reuse {
    Serve,
    /// Only after the origin has confirmed the response.
    Validate,
    /// Not at all: the client requires a response from the origin.
    Refetch,
}

/// Age and lifetime of a stored response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Freshness {
    /// Instant at which the age was zero.
    born_ms: i64,
    lifetime_ms: i64,
    /// `no-cache`.
    always_validate: bool,
    /// `must-revalidate` and directives that imply it: never served stale, whatever the request accepts.
    never_stale: bool,
    /// Staleness allowed when the origin fails, as the response states it.
    stale_if_error_ms: Option<i64>,
    /// Staleness allowed while the response is revalidated.
    stale_while_revalidate_ms: i64,
}

impl Freshness {
    /// Freshness of a response whose request was sent, and whose head was received, at these instants.
    pub fn new(response: &ResponseFacts, requested_ms: i64, received_ms: i64) -> Self {
        let date_ms = response.date_s.map_or(received_ms, seconds_to_ms);
        let apparent_age_ms = received_ms.saturating_sub(date_ms).max(0);
        let delay_ms = received_ms.saturating_sub(requested_ms).max(0);
        let corrected_age_ms = delta_to_ms(response.age_s).saturating_add(delay_ms);
        let control = &response.control;
        Self {
            born_ms: received_ms.saturating_sub(apparent_age_ms.max(corrected_age_ms)),
            lifetime_ms: lifetime_ms(response, date_ms),
            always_validate: control.no_cache,
            never_stale: control.must_revalidate || control.proxy_revalidate || control.s_maxage_s.is_some(),
            stale_if_error_ms: control.stale_if_error_s.map(delta_to_ms),
            stale_while_revalidate_ms: control.stale_while_revalidate_s.map_or(0, delta_to_ms),
        }
    }

    /// True if the response may never be served stale, whatever the request accepts and whether or not the origin can be reached.
    pub fn is_never_stale(&self) -> bool {
        self.never_stale
    }

    /// Current age (4.2.3).
    pub fn age_ms(&self, now_ms: i64) -> i64 {
        now_ms.saturating_sub(self.born_ms).max(0)
    }

    /// Current age in whole seconds, as `Age` shows it.
    pub fn age_s(&self, now_ms: i64) -> u64 {
        self.age_ms(now_ms).unsigned_abs() / 1000
    }

    /// Remaining freshness lifetime; zero or less when the response is stale.
    pub fn remaining_ms(&self, now_ms: i64) -> i64 {
        self.lifetime_ms.saturating_sub(self.age_ms(now_ms))
    }

    /// Whether the response may be reused for a request at this instant (4.2, 5.2.1).
    pub fn reuse(&self, request: &RequestControl, now_ms: i64) -> Reuse {
        if request.no_cache {
            return Reuse::Refetch;
        }
        let remaining_ms = self.remaining_ms(now_ms);
        if self.always_validate || self.is_refused_by(request, now_ms) {
            return Reuse::Validate;
        }
        let stale_ms = -remaining_ms;
        let stale_is_taken = match request.max_stale {
            _ if self.never_stale => false,
            None => false,
            Some(MaxStale::Any) => true,
            Some(MaxStale::Seconds(most)) => stale_ms <= delta_to_ms(most),
        };
        if remaining_ms > 0 || stale_is_taken { Reuse::Serve } else { Reuse::Validate }
    }

    /// Whether the response may be served stale, now that its origin has failed (RFC 5861; RFC 9111, 4.2.4).
    ///
    /// The response or the request must allow that much staleness, or the configuration (`granted_s`), where the response states nothing.
    /// Directives that forbid stale responses win over all of them.
    pub fn serves_on_error(&self, request: &RequestControl, granted_s: u64, now_ms: i64) -> bool {
        if request.no_cache || self.always_validate || self.never_stale || self.is_refused_by(request, now_ms)
        {
            return false;
        }
        let allowed_ms = self.stale_if_error_ms.unwrap_or(delta_to_ms(granted_s));
        let requested_ms = request.stale_if_error_s.map_or(0, delta_to_ms);
        let stale_ms = -self.remaining_ms(now_ms);
        // A fresh response that was not served was refused by the request itself: an error does not change that.
        stale_ms >= 0 && stale_ms <= allowed_ms.max(requested_ms) && allowed_ms.max(requested_ms) > 0
    }

    /// Whether the response may be served stale while it is revalidated (RFC 5861, 3). Directives that forbid stale responses win, and so
    /// does a request that accepts only fresh ones.
    pub fn serves_while_revalidated(&self, request: &RequestControl, now_ms: i64) -> bool {
        let is_refused = request.no_cache
            || request.min_fresh_s.is_some()
            || self.always_validate
            || self.never_stale
            || self.is_refused_by(request, now_ms);
        let stale_ms = -self.remaining_ms(now_ms);
        !is_refused && (0..self.stale_while_revalidate_ms).contains(&stale_ms)
    }

    /// True if the request does not accept the response, however fresh it is for others.
    fn is_refused_by(&self, request: &RequestControl, now_ms: i64) -> bool {
        let too_old = request.max_age_s.is_some_and(|max| max == 0 || self.age_ms(now_ms) > delta_to_ms(max));
        let too_near = request.min_fresh_s.is_some_and(|min| self.remaining_ms(now_ms) < delta_to_ms(min));
        too_old || too_near
    }
}

/// Whether an origin that responds with this status has failed in the sense of `stale-if-error` (RFC 5861, 4).
pub fn is_failure(status: u16) -> bool {
    matches!(status, 500 | 502 | 503 | 504)
}

/// Whether the response states its freshness lifetime.
pub fn has_explicit_lifetime(response: &ResponseFacts) -> bool {
    response.control.s_maxage_s.is_some()
        || response.control.max_age_s.is_some()
        || !matches!(response.expires, Expires::Absent)
}

/// Freshness lifetime (4.2.1) of a response to a shared cache.
fn lifetime_ms(response: &ResponseFacts, date_ms: i64) -> i64 {
    if let Some(seconds) = response.control.s_maxage_s.or(response.control.max_age_s) {
        return delta_to_ms(seconds);
    }
    match response.expires {
        Expires::At(at_s) => seconds_to_ms(at_s).saturating_sub(date_ms).clamp(0, delta_to_ms(MAX_DELTA_S)),
        Expires::Absent if may_be_assumed_fresh(response) => delta_to_ms(response.default_lifetime_s),
        Expires::Invalid | Expires::Absent => 0,
    }
}

/// Whether a lifetime may be assumed: the response states none, and its status or `public` allows it (4.2.2).
pub fn may_be_assumed_fresh(response: &ResponseFacts) -> bool {
    !has_explicit_lifetime(response) && (response.control.public || is_cachable_by_default(response.status))
}

/// Statuses that are heuristically cacheable (RFC 9110, 15.1), without 206: parts are not stored.
pub fn is_cachable_by_default(status: u16) -> bool {
    matches!(status, 200 | 203 | 204 | 300 | 301 | 308 | 404 | 405 | 410 | 414 | 501)
}

fn seconds_to_ms(seconds: i64) -> i64 {
    seconds.saturating_mul(1000)
}

fn delta_to_ms(seconds: u64) -> i64 {
    // At most 2^31 seconds: fits.
    (seconds.min(MAX_DELTA_S) * 1000) as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const T: i64 = 1_000_000;

    fn expiring(after_s: i64) -> ResponseFacts {
        ResponseFacts {
            status: 200,
            date_s: Some(T),
            expires: Expires::At(T + after_s),
            ..Default::default()
        }
    }

    fn with_control(control: ResponseControl) -> ResponseFacts {
        ResponseFacts { status: 200, date_s: Some(T), control, ..Default::default() }
    }

    fn at(response: &ResponseFacts) -> Freshness {
        Freshness::new(response, T * 1000, T * 1000)
    }

    fn plain(freshness: &Freshness, now_ms: i64) -> Reuse {
        freshness.reuse(&RequestControl::default(), now_ms)
    }

    #[test]
    fn a_response_is_fresh_until_the_very_instant_of_expires() {
        let fresh = at(&expiring(10));
        assert_eq!(plain(&fresh, T * 1000 + 9_999), Reuse::Serve);
        assert_eq!(plain(&fresh, T * 1000 + 10_000), Reuse::Validate);
    }

    #[test]
    fn s_maxage_wins_over_max_age_which_wins_over_expires() {
        let mut response = expiring(1000);
        response.control.max_age_s = Some(100);
        assert_eq!(at(&response).remaining_ms(T * 1000), 100_000);
        response.control.s_maxage_s = Some(10);
        assert_eq!(at(&response).remaining_ms(T * 1000), 10_000);
    }

    #[test]
    fn without_a_lifetime_or_with_a_broken_one_a_response_is_stale_at_once() {
        let silent =
            ResponseFacts { status: 200, date_s: Some(T), has_validator: true, ..Default::default() };
        assert_eq!(plain(&at(&silent), T * 1000), Reuse::Validate);
        let broken = ResponseFacts { expires: Expires::Invalid, ..silent };
        assert_eq!(plain(&at(&broken), T * 1000), Reuse::Validate);
    }

    #[test]
    fn a_lifetime_is_assumed_where_none_is_said_and_the_status_allows_it() {
        let silent = ResponseFacts { status: 200, default_lifetime_s: 60, ..ResponseFacts::default() };
        let fresh_for_s = |response: &ResponseFacts| at(response).remaining_ms(T * 1000) / 1000;
        assert_eq!(fresh_for_s(&silent), 60);
        assert_eq!(fresh_for_s(&ResponseFacts { default_lifetime_s: 0, ..silent }), 0);
        assert_eq!(fresh_for_s(&ResponseFacts { status: 302, ..silent }), 0);
        let public = ResponseControl { public: true, ..ResponseControl::default() };
        assert_eq!(fresh_for_s(&ResponseFacts { status: 302, control: public, ..silent }), 60);
        assert_eq!(fresh_for_s(&ResponseFacts { expires: Expires::Invalid, ..silent }), 0, "it has expired");
        let said = ResponseControl { max_age_s: Some(5), ..ResponseControl::default() };
        assert_eq!(fresh_for_s(&ResponseFacts { control: said, ..silent }), 5);
        let no_cache = ResponseControl { no_cache: true, ..ResponseControl::default() };
        let unconfirmed = at(&ResponseFacts { control: no_cache, ..silent });
        assert_eq!(plain(&unconfirmed, T * 1000), Reuse::Validate);
    }

    #[test]
    fn age_is_the_larger_of_what_dates_and_what_age_say() {
        // Dated 4 s before it came; the cache before us says 7 s, and the way took 1 s.
        let response = ResponseFacts { date_s: Some(T - 4), age_s: 7, ..expiring(100) };
        let fresh = Freshness::new(&response, T * 1000 - 1000, T * 1000);
        assert_eq!(fresh.age_s(T * 1000), 8);
        assert_eq!(fresh.age_s(T * 1000 + 2500), 10);
        let dated = Freshness::new(&ResponseFacts { age_s: 0, ..response }, T * 1000 - 1000, T * 1000);
        assert_eq!(dated.age_s(T * 1000), 4);
    }

    #[test]
    fn a_clock_that_is_ahead_or_behind_makes_no_negative_age() {
        let ahead = ResponseFacts { date_s: Some(T + 50), ..expiring(60) };
        let fresh = at(&ahead);
        assert_eq!(fresh.age_s(T * 1000), 0);
        assert_eq!(fresh.age_s(T * 1000 - 5000), 0);
        assert_eq!(fresh.remaining_ms(T * 1000), 10_000);
    }

    #[test]
    fn a_reload_is_never_served_from_the_store() {
        let request = RequestControl { no_cache: true, ..Default::default() };
        assert_eq!(at(&expiring(10)).reuse(&request, T * 1000), Reuse::Refetch);
    }

    #[test]
    fn requests_narrow_and_widen_what_they_take() {
        let fresh = at(&expiring(10));
        let lookup = |request: RequestControl, after_ms: i64| fresh.reuse(&request, T * 1000 + after_ms);
        let max_age = |s| RequestControl { max_age_s: Some(s), ..Default::default() };
        assert_eq!(lookup(max_age(5), 5000), Reuse::Serve);
        assert_eq!(lookup(max_age(5), 5001), Reuse::Validate);
        assert_eq!(lookup(max_age(0), 0), Reuse::Validate);
        let min_fresh = RequestControl { min_fresh_s: Some(3), ..Default::default() };
        assert_eq!(lookup(min_fresh, 7000), Reuse::Serve);
        assert_eq!(lookup(min_fresh, 7001), Reuse::Validate);
        let max_stale = |m| RequestControl { max_stale: Some(m), ..Default::default() };
        assert_eq!(lookup(max_stale(MaxStale::Seconds(2)), 12_000), Reuse::Serve);
        assert_eq!(lookup(max_stale(MaxStale::Seconds(2)), 12_001), Reuse::Validate);
        assert_eq!(lookup(max_stale(MaxStale::Any), 1_000_000), Reuse::Serve);
    }

    #[test]
    fn what_must_be_revalidated_is_not_served_stale_and_no_cache_not_even_fresh() {
        let takes_all = RequestControl { max_stale: Some(MaxStale::Any), ..Default::default() };
        for control in [
            ResponseControl { must_revalidate: true, max_age_s: Some(1), ..Default::default() },
            ResponseControl { proxy_revalidate: true, max_age_s: Some(1), ..Default::default() },
            ResponseControl { s_maxage_s: Some(1), ..Default::default() },
        ] {
            let fresh = at(&with_control(control));
            assert_eq!(fresh.reuse(&takes_all, T * 1000 + 2000), Reuse::Validate, "{control:?}");
            assert_eq!(plain(&fresh, T * 1000), Reuse::Serve, "{control:?}");
        }
        let no_cache = ResponseControl { no_cache: true, max_age_s: Some(100), ..Default::default() };
        assert_eq!(at(&with_control(no_cache)).reuse(&takes_all, T * 1000), Reuse::Validate);
    }

    #[test]
    fn a_stale_response_stands_in_for_a_failed_origin_as_long_as_somebody_allows_it() {
        let response = |control| at(&with_control(ResponseControl { max_age_s: Some(10), ..control }));
        let silent = response(ResponseControl::default());
        let speaking = response(ResponseControl { stale_if_error_s: Some(5), ..Default::default() });
        let (plain, after) = (RequestControl::default(), |ms: i64| T * 1000 + ms);
        let requesting = RequestControl { stale_if_error_s: Some(7), ..plain };
        assert!(!silent.serves_on_error(&plain, 0, after(10_001)), "nobody allows it");
        assert!(silent.serves_on_error(&plain, 60, after(70_000)));
        assert!(!silent.serves_on_error(&plain, 60, after(70_001)));
        assert!(speaking.serves_on_error(&plain, 0, after(15_000)));
        assert!(!speaking.serves_on_error(&plain, 60, after(15_001)), "what the response says goes first");
        assert!(speaking.serves_on_error(&requesting, 0, after(17_000)));
        assert!(!speaking.serves_on_error(&requesting, 0, after(17_001)));
        assert!(!silent.serves_on_error(&plain, 60, after(5_000)), "it is not stale");
    }

    #[test]
    fn a_stale_response_is_served_while_it_is_validated_as_long_as_it_says_itself() {
        let response = |control| at(&with_control(ResponseControl { max_age_s: Some(10), ..control }));
        let allows = ResponseControl { stale_while_revalidate_s: Some(5), ..Default::default() };
        let (plain, after) = (RequestControl::default(), |ms: i64| T * 1000 + ms);
        let may = |control, request: &RequestControl, ms| {
            response(control).serves_while_revalidated(request, after(ms))
        };
        assert!(may(allows, &plain, 10_000) && may(allows, &plain, 14_999));
        assert!(!may(allows, &plain, 15_000), "it is over");
        assert!(!may(allows, &plain, 9_999), "it is fresh");
        assert!(!may(ResponseControl::default(), &plain, 10_001), "nobody allows it");
        for forbids in [
            ResponseControl { must_revalidate: true, ..allows },
            ResponseControl { no_cache: true, ..allows },
            ResponseControl { s_maxage_s: Some(10), ..allows },
        ] {
            assert!(!may(forbids, &plain, 12_000), "{forbids:?}");
        }
        for request in [
            RequestControl { no_cache: true, ..plain },
            RequestControl { max_age_s: Some(11), ..plain },
            RequestControl { min_fresh_s: Some(0), ..plain },
        ] {
            assert!(!may(allows, &request, 12_000), "{request:?}");
        }
    }

    #[test]
    fn what_forbids_stale_responses_holds_when_the_origin_fails_too() {
        for control in [
            ResponseControl { must_revalidate: true, max_age_s: Some(1), ..Default::default() },
            ResponseControl { proxy_revalidate: true, max_age_s: Some(1), ..Default::default() },
            ResponseControl { s_maxage_s: Some(1), ..Default::default() },
            ResponseControl { no_cache: true, max_age_s: Some(1), ..Default::default() },
        ] {
            let forbids = at(&with_control(ResponseControl { stale_if_error_s: Some(100), ..control }));
            assert!(
                !forbids.serves_on_error(&RequestControl::default(), 100, T * 1000 + 2000),
                "{control:?}"
            );
        }
        let stale = at(&with_control(ResponseControl { max_age_s: Some(1), ..Default::default() }));
        for request in [
            RequestControl { no_cache: true, ..Default::default() },
            RequestControl { max_age_s: Some(1), ..Default::default() },
            RequestControl { min_fresh_s: Some(1), ..Default::default() },
        ] {
            assert!(!stale.serves_on_error(&request, 100, T * 1000 + 2000), "{request:?}");
        }
    }

    proptest! {
        #[test]
        fn no_input_overflows(
            date_s in proptest::option::of(any::<i64>()), expires_s in any::<i64>(), age_s in any::<u64>(),
            requested_ms in any::<i64>(), received_ms in any::<i64>(), now_ms in any::<i64>(),
            delta in any::<u64>(),
        ) {
            let control = ResponseControl { max_age_s: (delta % 2 == 0).then_some(delta), ..Default::default() };
            let expires = Expires::At(expires_s);
            let response = ResponseFacts { status: 200, date_s, age_s, expires, control, ..Default::default() };
            let fresh = Freshness::new(&response, requested_ms, received_ms);
            let request = RequestControl {
                max_age_s: Some(delta), min_fresh_s: Some(delta), max_stale: Some(MaxStale::Seconds(delta)),
                ..Default::default()
            };
            fresh.reuse(&request, now_ms);
            fresh.serves_on_error(&RequestControl { stale_if_error_s: Some(delta), ..request }, delta, now_ms);
            prop_assert!(fresh.age_ms(now_ms) >= 0);
        }

        #[test]
        fn with_one_clock_a_response_is_fresh_exactly_until_expires(
            life_s in 0i64..100_000, made_ms in 0i64..5_000, after_ms in 0i64..200_000_000,
        ) {
            let received_ms = T * 1000 + made_ms;
            let date_s = received_ms / 1000;
            let expires = Expires::At(date_s + life_s);
            let response = ResponseFacts { date_s: Some(date_s), expires, ..expiring(0) };
            let fresh = Freshness::new(&response, received_ms, received_ms);
            let now_ms = received_ms + after_ms;
            prop_assert_eq!(plain(&fresh, now_ms) == Reuse::Serve, now_ms < (date_s + life_s) * 1000);
        }
    }
}
