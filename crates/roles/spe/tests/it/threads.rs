//! The Multiplier and the Collector on threads of their own, for clients and servers that block.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::mpsc;
use std::thread::{JoinHandle, spawn};

use assay_spe::collector::Collector;
use assay_spe::multiplier::{Multiplier, MultiplierLimits};
use assay_spe::spec::{CollectorSpec, MultiplierSpec, ProxyUnderTest};
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::oneshot;
use tokio::task::spawn_local;

use crate::collector_harness::spec;
use crate::multiplier_bed;
use assay_testbed::corpus::recorder::Recorder;

/// What tells where it listens, and is told when to end.
type Ends = (mpsc::Sender<Vec<SocketAddr>>, oneshot::Receiver<()>);

/// Something that listens, on a thread of its own.
pub struct Running {
    pub addresses: Vec<SocketAddr>,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl Running {
    fn start<W: AsyncFnOnce(Ends) + Send + 'static>(work: W) -> Self {
        let (stop, stopped) = oneshot::channel();
        let (ready, addresses) = mpsc::channel();
        let thread = spawn(move || {
            let runtime =
                Builder::new_current_thread().enable_all().build_local(LocalOptions::default()).unwrap();
            runtime.block_on(work((ready, stopped)));
        });
        Self { addresses: addresses.recv().unwrap(), stop, thread }
    }

    /// Ends it, with all that it has still to do.
    pub fn end(self) {
        let _ = self.stop.send(());
        self.thread.join().unwrap();
    }
}

/// A Collector before an origin: a listener of the Multiplier and one of a proxy.
pub fn collector(origin: SocketAddr) -> Running {
    collector_of(spec(origin, 1))
}

pub fn collector_of(spec: CollectorSpec) -> Running {
    Running::start(async move |(ready, stopped)| {
        let collector = Rc::new(Collector::bind(&spec).unwrap());
        ready.send(collector.addresses().to_vec()).unwrap();
        tokio::select! {
            _ = Rc::clone(&collector).serve() => {}
            _ = stopped => {}
        }
    })
}

/// A Multiplier before a Collector and a proxy under test.
pub fn multiplier(
    collector: &Recorder,
    proxy: &Recorder,
    set: impl FnOnce(&mut MultiplierSpec) + Send + 'static,
) -> Running {
    let (collector, proxy) = (collector.address, proxy.address);
    Running::start(async move |(ready, stopped)| {
        let directory = tempfile::tempdir().unwrap();
        let mut spec = multiplier_bed::spec(collector, directory.path());
        spec.proxies = vec![ProxyUnderTest { label: "p".into(), address: proxy, tls: None }];
        set(&mut spec);
        let multiplier = Rc::new(Multiplier::bind(&spec, MultiplierLimits::default()).unwrap());
        ready.send(vec![multiplier.address()]).unwrap();
        let server = Rc::clone(&multiplier);
        let serving = spawn_local(async move { server.serve().await });
        let _ = stopped.await;
        serving.abort();
        let _ = serving.await;
        Rc::into_inner(multiplier).expect("nobody else has it").finish().await.unwrap();
    })
}
