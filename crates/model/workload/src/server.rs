//! The kinds of servers of a workload, ready for draws.

use crate::distribution::Sampler;
use crate::expiry::RequestExpiry;
use crate::model::{Popularity, Server};
use crate::picker::Picker;

/// A kind of server, ready for draws.
#[derive(Debug)]
pub(crate) struct ServerTable {
    /// Sum of the shares of all faults.
    pub(crate) faults: f64,
    pub(crate) statuses: Picker<u16>,
    pub(crate) slow_start: Sampler,
    pub(crate) expiry: Option<RequestExpiry>,
    pub(crate) redirect_share: f64,
    pub(crate) popularity: Popularity,
    /// Number and length of cookies.
    pub(crate) cookies: Option<(Sampler, Sampler)>,
}

impl ServerTable {
    pub(crate) fn new(server: &Server) -> Self {
        let faults = &server.faults;
        Self {
            faults: faults.error_share
                + faults.reset_share
                + faults.slow_start_share
                + faults.slow_body_share,
            statuses: Picker::from_weighted(&faults.statuses),
            slow_start: faults.slow_start_s.sampler(),
            expiry: RequestExpiry::new(server),
            redirect_share: server.redirect_share,
            popularity: server.popularity.clone().unwrap_or_default(),
            cookies: server.cookies.as_ref().map(|c| (c.count.sampler(), c.value_bytes.sampler())),
        }
    }
}
