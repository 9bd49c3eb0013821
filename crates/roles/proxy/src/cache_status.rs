//! `Cache-Status` (RFC 9211): how a request was handled, for the response and the access log.

/// Server that responded to a fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseSource {
    Origin,
    Sibling,
    Parent,
}

/// Reasons for forwarding a request (RFC 9211, 2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForwardReason {
    Miss,
    /// Stored for other request fields.
    VaryMiss,
    /// Stored, but no longer fresh.
    Stale,
    /// Stored, but not acceptable to the request.
    Request,
    /// Method that is not cached.
    Method,
    /// Request that this cache leaves to the origin.
    Bypass,
}

impl ForwardReason {
    fn text(self) -> &'static [u8] {
        match self {
            ForwardReason::Miss => b"fwd=miss",
            ForwardReason::VaryMiss => b"fwd=vary-miss",
            ForwardReason::Stale => b"fwd=stale",
            ForwardReason::Request => b"fwd=request",
            ForwardReason::Method => b"fwd=method",
            ForwardReason::Bypass => b"fwd=bypass",
        }
    }
}

/// Value of `Cache-Status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheStatus {
    /// Served from the store.
    Hit {
        /// Remaining freshness in seconds; negative: stale.
        ttl_s: i64,
    },
    Forwarded {
        reason: ForwardReason,
        /// The origin confirmed the stored response.
        is_confirmed: bool,
        /// The response is being stored.
        is_stored: bool,
        /// The request joined the fetch of another one.
        is_collapsed: bool,
        source: ResponseSource,
    },
    /// Served from the store, stale, because the origin failed.
    StaleOnError {
        /// Remaining freshness in seconds; negative, or 0.
        ttl_s: i64,
        /// Status of the origin's response; `None` without a usable one.
        status: Option<u16>,
        /// The request joined the fetch of another one.
        is_collapsed: bool,
    },
    /// Nothing is stored, and `only-if-cached` forbids forwarding.
    NotForwarded,
}

impl CacheStatus {
    /// Forwarded for this request alone, and not stored.
    pub fn bypass(reason: ForwardReason) -> Self {
        CacheStatus::Forwarded {
            reason,
            is_confirmed: false,
            is_stored: false,
            is_collapsed: false,
            source: ResponseSource::Origin,
        }
    }

    /// Appends the field; `name` identifies this cache.
    pub fn append(self, name: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(b"Cache-Status: ");
        out.extend_from_slice(name.as_bytes());
        match self {
            CacheStatus::Hit { ttl_s } => {
                out.extend_from_slice(b"; hit");
                append_ttl(out, ttl_s);
            }
            CacheStatus::StaleOnError { ttl_s, status, is_collapsed } => {
                out.extend_from_slice(b"; fwd=stale");
                if let Some(status) = status {
                    out.extend_from_slice(b"; fwd-status=");
                    assay_http::field::write_decimal(out, u64::from(status));
                }
                out.extend_from_slice(if is_collapsed { b"; collapsed" } else { b"" });
                append_ttl(out, ttl_s);
                out.extend_from_slice(b"; detail=stale-if-error");
            }
            CacheStatus::Forwarded { reason, is_confirmed, is_stored, is_collapsed, source } => {
                out.extend_from_slice(b"; ");
                out.extend_from_slice(reason.text());
                let marks: [(bool, &[u8]); 5] = [
                    (is_confirmed, b"; fwd-status=304"),
                    (is_stored, b"; stored"),
                    (is_collapsed, b"; collapsed"),
                    (source == ResponseSource::Sibling, b"; detail=sibling"),
                    (source == ResponseSource::Parent, b"; detail=parent"),
                ];
                marks.iter().filter(|mark| mark.0).for_each(|mark| out.extend_from_slice(mark.1));
            }
            CacheStatus::NotForwarded => {}
        }
        out.extend_from_slice(b"\r\n");
    }
}

fn append_ttl(out: &mut Vec<u8>, ttl_s: i64) {
    out.extend_from_slice(if ttl_s < 0 { b"; ttl=-" } else { b"; ttl=" });
    assay_http::field::write_decimal(out, ttl_s.unsigned_abs());
}
