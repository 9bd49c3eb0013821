//! A server that remembers its requests.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use crate::replay::server;

/// A request that came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedRequest {
    pub line: String,
    pub host: String,
    /// Number of its connection.
    pub connection: u64,
}

impl CheckedRequest {
    pub fn path(&self) -> &str {
        server::path(&self.line)
    }
}

pub struct Server {
    pub address: SocketAddr,
    requested: Arc<Mutex<Vec<CheckedRequest>>>,
    first: Arc<Notify>,
}

impl Server {
    pub fn start() -> Self {
        let (requested, first) = (Arc::<Mutex<Vec<CheckedRequest>>>::default(), Arc::new(Notify::new()));
        let (seen, told) = (Arc::clone(&requested), Arc::clone(&first));
        let sees = move |line: &str, host: &str, connection| {
            let one = CheckedRequest { line: line.to_owned(), host: host.to_owned(), connection };
            seen.lock().unwrap().push(one);
        };
        Self { address: server::start(sees, move || told.notify_one()), requested, first }
    }

    pub fn requested(&self) -> Vec<CheckedRequest> {
        self.requested.lock().unwrap().clone()
    }

    /// Ready when a response has been sent.
    pub async fn first_request(&self) {
        self.first.notified().await;
    }
}
