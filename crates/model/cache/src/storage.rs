//! Storing of responses in a shared cache, and their invalidation (RFC 9111, sections 3 and 4.4).

use thiserror::Error;

use crate::freshness::{RequestControl, ResponseFacts, has_explicit_lifetime, is_cachable_by_default};

/// Class of a method, as a cache distinguishes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MethodClass {
    /// Served from the store, fills it.
    Get,
    /// Served from the store, does not fill it.
    Head,
    /// Changes nothing at the origin, and is not cached: OPTIONS, TRACE.
    Safe,
    /// May change the resource: POST, PUT, DELETE and every method that is not known.
    Unsafe,
}

impl MethodClass {
    /// Class of a method as sent; methods are case-sensitive.
    pub fn from_method(method: &str) -> Self {
        match method {
            "GET" => MethodClass::Get,
            "HEAD" => MethodClass::Head,
            "OPTIONS" | "TRACE" => MethodClass::Safe,
            _ => MethodClass::Unsafe,
        }
    }
}

/// True for methods that may be sent again when it is unknown whether the first attempt was acted on
/// (RFC 9110, 9.2.2).
pub fn is_idempotent(method: &str) -> bool {
    matches!(method, "GET" | "HEAD" | "OPTIONS" | "TRACE" | "PUT" | "DELETE")
}

/// Whether a response of this status to a request of this class invalidates the stored responses of its target (4.4).
pub fn invalidates(method: MethodClass, status: u16) -> bool {
    method == MethodClass::Unsafe && matches!(status, 200..=399)
}

/// Reason why a response may not be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum NotStorable {
    /// Only responses to GET are stored.
    #[error("the method is not GET")]
    Method,
    /// Part of a representation, a 304, an interim response, or a status that is not final.
    #[error("the status is not one that is stored")]
    Status,
    /// `no-store` in the request or the response.
    #[error("no-store")]
    NoStore,
    /// `private` in the response.
    #[error("private")]
    Private,
    /// The request was authorised, and the response does not allow sharing.
    #[error("the request was authorised, and the response is not marked for sharing")]
    Authorised,
    /// Neither a lifetime nor a validator: the response could never be reused.
    #[error("neither a lifetime nor a validator")]
    Useless,
}

/// Whether a shared cache may store the final response to a request, and has a use for it (3 and 3.5).
pub fn may_store(
    method: MethodClass,
    request: &RequestControl,
    authorised: bool,
    response: &ResponseFacts,
) -> Result<(), NotStorable> {
    let control = &response.control;
    if method != MethodClass::Get {
        return Err(NotStorable::Method);
    }
    if matches!(response.status, 0..=199 | 206 | 304) {
        return Err(NotStorable::Status);
    }
    if request.no_store || control.no_store {
        return Err(NotStorable::NoStore);
    }
    if control.private {
        return Err(NotStorable::Private);
    }
    let for_sharing = control.public || control.must_revalidate || control.s_maxage_s.is_some();
    if authorised && !for_sharing {
        return Err(NotStorable::Authorised);
    }
    let explicit = has_explicit_lifetime(response);
    if !(explicit || control.public || is_cachable_by_default(response.status)) {
        return Err(NotStorable::Status);
    }
    if !(explicit || response.default_lifetime_s > 0 || response.has_validator) {
        return Err(NotStorable::Useless);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::freshness::{Expires, ResponseControl};

    fn ok(control: ResponseControl) -> ResponseFacts {
        ResponseFacts { status: 200, has_validator: true, control, ..Default::default() }
    }

    fn store(response: &ResponseFacts) -> Result<(), NotStorable> {
        may_store(MethodClass::Get, &RequestControl::default(), false, response)
    }

    #[test]
    fn a_public_response_with_expiry_is_stored_and_a_private_one_is_not() {
        let public = ResponseControl { public: true, ..Default::default() };
        assert_eq!(store(&ResponseFacts { expires: Expires::At(5), ..ok(public) }), Ok(()));
        let uncachable =
            ResponseControl { private: true, no_cache: true, no_store: true, ..Default::default() };
        assert_eq!(store(&ok(uncachable)), Err(NotStorable::NoStore));
        assert_eq!(
            store(&ok(ResponseControl { private: true, ..Default::default() })),
            Err(NotStorable::Private)
        );
    }

    #[test]
    fn only_responses_to_get_are_stored() {
        let response = ok(ResponseControl { max_age_s: Some(5), ..Default::default() });
        for method in ["HEAD", "POST", "OPTIONS", "get", "FROBNICATE"] {
            let class = MethodClass::from_method(method);
            let stored = may_store(class, &RequestControl::default(), false, &response);
            assert_eq!(stored, Err(NotStorable::Method), "{method}");
        }
    }

    #[test]
    fn no_store_in_the_request_is_obeyed() {
        let request = RequestControl { no_store: true, ..Default::default() };
        let response = ok(ResponseControl { max_age_s: Some(5), ..Default::default() });
        assert_eq!(may_store(MethodClass::Get, &request, false, &response), Err(NotStorable::NoStore));
    }

    #[test]
    fn an_authorised_response_is_stored_only_when_marked_for_sharing() {
        let request = RequestControl::default();
        let lifetime = ResponseControl { max_age_s: Some(5), ..Default::default() };
        let kept = |control| may_store(MethodClass::Get, &request, true, &ok(control));
        assert_eq!(kept(lifetime), Err(NotStorable::Authorised));
        assert_eq!(kept(ResponseControl { public: true, ..lifetime }), Ok(()));
        assert_eq!(kept(ResponseControl { must_revalidate: true, ..lifetime }), Ok(()));
        assert_eq!(kept(ResponseControl { s_maxage_s: Some(1), ..lifetime }), Ok(()));
    }

    #[test]
    fn what_could_never_be_used_again_is_not_stored() {
        let silent = ResponseFacts { status: 200, ..Default::default() };
        assert_eq!(store(&silent), Err(NotStorable::Useless));
        assert_eq!(store(&ResponseFacts { has_validator: true, ..silent }), Ok(()));
    }

    #[test]
    fn odd_statuses_need_an_explicit_lifetime_and_partial_ones_never_go_in() {
        let lifetime = ResponseControl { max_age_s: Some(5), ..Default::default() };
        assert_eq!(store(&ResponseFacts { status: 500, ..ok(lifetime) }), Ok(()));
        assert_eq!(
            store(&ResponseFacts { status: 500, ..ok(ResponseControl::default()) }),
            Err(NotStorable::Status)
        );
        assert_eq!(store(&ResponseFacts { status: 404, ..ok(ResponseControl::default()) }), Ok(()));
        for status in [100, 206, 304] {
            assert_eq!(
                store(&ResponseFacts { status, ..ok(lifetime) }),
                Err(NotStorable::Status),
                "{status}"
            );
        }
    }

    #[test]
    fn unsafe_methods_that_succeed_invalidate() {
        for (method, status, drops) in [
            ("POST", 200, true),
            ("DELETE", 204, true),
            ("FROBNICATE", 302, true),
            ("POST", 404, false),
            ("POST", 500, false),
            ("OPTIONS", 200, false),
            ("GET", 200, false),
            ("HEAD", 200, false),
        ] {
            assert_eq!(invalidates(MethodClass::from_method(method), status), drops, "{method} {status}");
        }
        assert!(is_idempotent("PUT") && !is_idempotent("POST") && !is_idempotent("FROBNICATE"));
    }
}
