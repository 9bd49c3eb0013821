//! How a request was handled, as `Cache-Status` (RFC 9211) and the access log say it.

/// The server that responded to a fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    Origin,
    /// A sibling, from its store.
    Sibling,
    Parent,
}

/// Why a request was forwarded (RFC 9211, 2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    Miss,
    /// Stored for other request fields.
    VaryMiss,
    /// Stored, but no longer fresh.
    Stale,
    /// Stored, but the request does not take it.
    Request,
    /// The method is not cached.
    Method,
    /// This cache leaves such requests to the origin.
    Bypass,
}

impl Why {
    fn text(self) -> &'static [u8] {
        match self {
            Why::Miss => b"fwd=miss",
            Why::VaryMiss => b"fwd=vary-miss",
            Why::Stale => b"fwd=stale",
            Why::Request => b"fwd=request",
            Why::Method => b"fwd=method",
            Why::Bypass => b"fwd=bypass",
        }
    }
}

/// What `Cache-Status` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handling {
    /// From the store, fresh for so many seconds more.
    Hit {
        /// Seconds; negative: stale.
        ttl_s: i64,
    },
    /// The request was forwarded to the origin.
    Forwarded {
        why: Why,
        /// It confirmed what is stored.
        is_confirmed: bool,
        /// Its response is being stored.
        is_stored: bool,
        /// For another request at the same time.
        is_collapsed: bool,
        /// The server that responded.
        source: Source,
    },
    /// From the store, stale, because the origin failed.
    OnError {
        /// Seconds of freshness; negative, or 0.
        ttl_s: i64,
        /// Status of the origin's response; none: there was none that can be used.
        status: Option<u16>,
        /// For another request at the same time.
        is_collapsed: bool,
    },
    /// Nothing was stored, and the request must not be forwarded to the origin.
    NotRequested,
}

impl Handling {
    /// It was forwarded to the origin for this request alone, and its response is not stored.
    pub fn passed(why: Why) -> Self {
        Handling::Forwarded {
            why,
            is_confirmed: false,
            is_stored: false,
            is_collapsed: false,
            source: Source::Origin,
        }
    }

    /// Appends the field; `name` is ours.
    pub fn append(self, name: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(b"Cache-Status: ");
        out.extend_from_slice(name.as_bytes());
        match self {
            Handling::Hit { ttl_s } => {
                out.extend_from_slice(b"; hit");
                append_ttl(out, ttl_s);
            }
            Handling::OnError { ttl_s, status, is_collapsed } => {
                out.extend_from_slice(b"; fwd=stale");
                if let Some(status) = status {
                    out.extend_from_slice(b"; fwd-status=");
                    assay_http::field::write_decimal(out, u64::from(status));
                }
                out.extend_from_slice(if is_collapsed { b"; collapsed" } else { b"" });
                append_ttl(out, ttl_s);
                out.extend_from_slice(b"; detail=stale-if-error");
            }
            Handling::Forwarded { why, is_confirmed, is_stored, is_collapsed, source } => {
                out.extend_from_slice(b"; ");
                out.extend_from_slice(why.text());
                let marks: [(bool, &[u8]); 5] = [
                    (is_confirmed, b"; fwd-status=304"),
                    (is_stored, b"; stored"),
                    (is_collapsed, b"; collapsed"),
                    (source == Source::Sibling, b"; detail=sibling"),
                    (source == Source::Parent, b"; detail=parent"),
                ];
                marks.iter().filter(|mark| mark.0).for_each(|mark| out.extend_from_slice(mark.1));
            }
            Handling::NotRequested => {}
        }
        out.extend_from_slice(b"\r\n");
    }
}

fn append_ttl(out: &mut Vec<u8>, ttl_s: i64) {
    out.extend_from_slice(if ttl_s < 0 { b"; ttl=-" } else { b"; ttl=" });
    assay_http::field::write_decimal(out, ttl_s.unsigned_abs());
}
