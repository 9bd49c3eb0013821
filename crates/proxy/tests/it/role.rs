//! What is refused before anything starts.

use assay_proxy::spec::ProxySpec;
use assay_proxy::{Clock, Limits, Proxy, ProxyError};

use crate::harness::run;

fn spec(listen: std::net::SocketAddr, threads: u32) -> ProxySpec {
    ProxySpec { listen, threads, cpus: Vec::new(), memory_bytes: 1_000_000, origins: Vec::new() }
}

#[test]
fn an_address_in_use_is_named() {
    run(async {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap();
        let error = Proxy::bind(&spec(address, 1), Clock::System, Limits::default()).err().unwrap();
        assert!(error.to_string().contains(&address.to_string()), "{error}");
    });
}

#[test]
fn more_than_one_thread_is_refused() {
    run(async {
        let refused = Proxy::bind(&spec("127.0.0.1:0".parse().unwrap(), 2), Clock::System, Limits::default());
        assert!(matches!(refused.err(), Some(ProxyError::Threads(2))));
    });
}
