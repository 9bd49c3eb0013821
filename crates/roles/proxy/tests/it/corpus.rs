//! The corpus of messages that could be read in two ways, through the proxy, between sockets that read strictly.

use std::net::SocketAddr;
use std::sync::mpsc;
use std::thread::{JoinHandle, spawn};

use assay_proxy::spec::{OriginRoute, ProxySpec};
use assay_proxy::{Clock, Proxy, ProxyLimits};
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::oneshot;

use assay_testbed::corpus::answered;
use assay_testbed::corpus::derived;
use assay_testbed::corpus::format::{Case, requests};
use assay_testbed::corpus::judge;
use assay_testbed::corpus::recorder::Recorder;
use assay_testbed::corpus::responses::{Responded, responses};

/// A proxy on a thread of its own.
struct Running {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl Running {
    fn before(origin: SocketAddr) -> Self {
        let (stop, stopped) = oneshot::channel();
        let (ready, address) = mpsc::channel();
        let thread = spawn(move || {
            let spec = ProxySpec {
                tls: None,
                origin_tls: None,
                origin_http2: false,
                name: "assay".into(),
                listen: "127.0.0.1:0".parse().unwrap(),
                threads: 1,
                cpus: Vec::new(),
                memory_bytes: 1_000_000,
                stale_if_error_s: 0,
                origins: vec![OriginRoute { authority: "a".into(), address: origin }],
                access_log: None,
                cooperation: None,
                prefetch: None,
                storing: assay_proxy::spec::Storing::default(),
            };
            let runtime =
                Builder::new_current_thread().enable_all().build_local(LocalOptions::default()).unwrap();
            runtime.block_on(async {
                let proxy = Proxy::bind(&spec, Clock::System, ProxyLimits::default()).unwrap();
                ready.send(proxy.address()).unwrap();
                tokio::select! {
                    () = proxy.serve() => {}
                    _ = stopped => {}
                }
            });
        });
        Self { address: address.recv().unwrap(), stop, thread }
    }

    fn end(self) {
        let _ = self.stop.send(());
        self.thread.join().unwrap();
    }
}

/// What is wrong with a case, at the front or at the back.
fn requested(case: &Case) -> Vec<String> {
    let recorder = Recorder::start();
    let proxy = Running::before(recorder.address);
    let front = judge::front(proxy.address, case);
    proxy.end();
    let back = judge::back(&recorder.finish(), case);
    [front, back].into_iter().filter_map(Result::err).map(|what| format!("{}: {what}", case.name())).collect()
}

/// What is wrong with what a client sees of a response to a request of this method.
fn responded(case: &Responded, method: &str) -> Vec<String> {
    let recorder = judge::misbehaving(case);
    let proxy = Running::before(recorder.address);
    let seen = judge::responded(proxy.address, case, method);
    proxy.end();
    recorder.finish();
    seen.err().map(|what| format!("{} ({method}): {what}", case.name)).into_iter().collect()
}

#[test]
fn no_request_of_the_corpus_comes_out_in_a_way_that_could_be_read_in_two() {
    let mut cases = requests();
    // It speaks HTTP/2 to whoever begins with it.
    cases.retain(|case| !case.name().contains("the first bytes of HTTP/2"));
    let wrong: Vec<String> = cases.iter().flat_map(requested).collect();
    assert!(wrong.is_empty(), "{} things in {} cases:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
fn no_response_of_the_corpus_reaches_another_client() {
    let cases = responses();
    let each =
        cases.iter().flat_map(|case| case.methods().into_iter().flat_map(|method| responded(case, method)));
    let wrong: Vec<String> = each.collect();
    assert!(wrong.is_empty(), "{} things in {} cases:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
fn no_request_at_random_is_read_in_two_ways_before_and_behind_the_proxy() {
    derived::requests(requested);
}

#[test]
fn no_response_at_random_is_read_in_two_ways_before_and_behind_the_proxy() {
    answered::responses(true, responded);
}
