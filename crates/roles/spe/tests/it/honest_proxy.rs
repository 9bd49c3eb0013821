//! A proxy under test that does nothing wrong.

use std::net::SocketAddr;
use std::rc::Rc;

use assay_proxy::spec::ProxySpec;
use assay_proxy::{Clock, Proxy, ProxyLimits};
use tokio::task::spawn_local;

/// A built-in proxy that is led to a listener for everything.
pub fn proxy(listener: SocketAddr) -> SocketAddr {
    let spec = ProxySpec {
        tls: None,
        origin_tls: None,
        origin_http2: false,
        name: "honest".into(),
        listen: "127.0.0.1:0".parse().unwrap(),
        threads: 1,
        cpus: Vec::new(),
        memory_bytes: 50_000_000,
        stale_if_error_s: 0,
        access_log: None,
        origins: vec![assay_proxy::spec::OriginRoute { authority: "*".into(), address: listener }],
        cooperation: None,
        prefetch: None,
        storing: assay_proxy::spec::Storing::default(),
    };
    let proxy = Rc::new(Proxy::bind(&spec, Clock::System, ProxyLimits::default()).unwrap());
    let address = proxy.address();
    spawn_local(async move { proxy.serve().await });
    address
}
