//! Proxies with settings of some tests, and dates as their clock has them.

use std::net::SocketAddr;

use assay_http::date::{DATE_BYTES, write_date};
use assay_proxy::ProxyLimits;
use assay_proxy::spec::{ProxySpec, Storing};

use crate::harness::{Bed, spec};

pub fn date(unix_s: i64) -> String {
    let mut text = [0; DATE_BYTES];
    write_date(unix_s as u64, &mut text);
    String::from_utf8(text.to_vec()).unwrap()
}

impl Bed {
    /// One that may serve what is so stale when an origin fails.
    pub fn with_stale_if_error(origins: &[(&str, SocketAddr)], stale_if_error_s: u64) -> Self {
        Self::of(&spec(origins, 10_000_000, stale_if_error_s), ProxyLimits::default())
    }

    /// In front of these origins, which speak HTTP/2.
    pub fn with_http2(origins: &[(&str, SocketAddr)]) -> Self {
        let spec = ProxySpec { origin_http2: true, ..spec(origins, 10_000_000, 0) };
        Self::of(&spec, ProxyLimits::default())
    }

    /// One that stores this.
    pub fn storing(origins: &[(&str, SocketAddr)], memory_bytes: u64, storing: Storing) -> Self {
        Self::of(&ProxySpec { storing, ..spec(origins, memory_bytes, 0) }, ProxyLimits::default())
    }
}
