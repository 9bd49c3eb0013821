//! A running switch: start, counters, changes, stop.

use std::io;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::JoinHandle;

use assay_net::listen::advice;
use assay_net::tls::server::Server;
use thiserror::Error;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::access_log::LogWriter;
use crate::config::Config;
use crate::control::{Control, Order, listeners};
use crate::secure::{Secure, SecureError};
use crate::tally::Snapshot;

/// Why a switch does not run, or does not take on a configuration. Causes are part of the message, and so no `source`.
#[derive(Debug, Error)]
pub enum SwitchError {
    /// It cannot listen there.
    #[error("cannot listen on {address}: {cause}; {}", advice(cause))]
    Listen {
        address: SocketAddr,
        /// What the system said.
        cause: io::Error,
    },
    /// Its log cannot be written.
    #[error("cannot write the access log {file}: {cause}; make its directory first, or name another file")]
    Log {
        file: String,
        /// What the system said.
        cause: io::Error,
    },
    /// TLS cannot be spoken as it is configured.
    #[error(transparent)]
    Secure(#[from] SecureError),
    #[error("cannot start the switch's threads: {0}")]
    Start(String),
    /// The number of workers cannot change while it runs.
    #[error("the number of workers changes from {0} to {1}: that needs a restart; all is as it was")]
    Workers(usize, usize),
    #[error("the switch has ended")]
    Ended,
}

/// A switch that runs, on threads of its own.
#[derive(Debug)]
pub struct Switch {
    /// TLS to clients as it was set up last, for the keys of its tickets.
    tls: Option<Server>,
    requests: UnboundedSender<Order>,
    thread: Option<JoinHandle<Result<(), SwitchError>>>,
    addresses: Vec<SocketAddr>,
    metrics: Option<SocketAddr>,
}

impl Switch {
    /// Starts one. It accepts connections when this returns.
    pub fn start(config: Config) -> Result<Self, SwitchError> {
        check_log(&config)?;
        let secure = Secure::read(&config)?;
        let tls = secure.clients.clone();
        let mut bound = Vec::new();
        for address in config.addresses() {
            bound.push((address, listeners(address, config.workers)?));
        }
        let addresses: Vec<SocketAddr> = bound.iter().map(|(_, (actual, _))| *actual).collect();
        let metrics = config.metrics.map(|address| listeners(address, 1)).transpose()?;
        let metrics_address = metrics.as_ref().map(|(actual, _)| *actual);
        let (requests, requested) = unbounded_channel();
        let (ready, started) = sync_channel(1);
        let thread = std::thread::Builder::new()
            .name("switch".into())
            .spawn(move || Control::run((config, secure), bound, metrics, requested, ready))
            .map_err(|cause| SwitchError::Start(cause.to_string()))?;
        let mut switch = Self { tls, requests, thread: Some(thread), addresses, metrics: metrics_address };
        // Nothing comes when the thread could not even begin: its own error says why.
        if started.recv().is_err() {
            switch.wait()?;
            return Err(SwitchError::Ended);
        }
        Ok(switch)
    }

    /// Where it listens, with the ports that the system gave: in the clear first, then with TLS.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Where it shows its counters.
    pub fn metrics(&self) -> Option<SocketAddr> {
        self.metrics
    }

    /// What it has done so far.
    pub fn snapshot(&self) -> Result<Snapshot, SwitchError> {
        let (sender, receiver) = sync_channel(1);
        self.order(Order::Snapshot(sender), &receiver)
    }

    /// Takes on another configuration: when this returns, requests that begin go by it. Those that have begun end as they
    /// would have. On an error, all is as it was.
    pub fn reload(&mut self, config: Config) -> Result<(), SwitchError> {
        check_log(&config)?;
        let mut secure = Secure::read(&config)?;
        secure.keep_tickets(self.tls.as_ref());
        let tls = secure.clients.clone();
        let (sender, receiver) = sync_channel(1);
        let listening = self.order(Order::Reload(Box::new((config, secure)), sender), &receiver)??;
        (self.addresses, self.metrics) = (listening.addresses, listening.metrics);
        self.tls = tls.or(self.tls.take());
        Ok(())
    }

    fn order<T>(&self, order: Order, receiver: &Receiver<T>) -> Result<T, SwitchError> {
        self.requests.send(order).map_err(|_| SwitchError::Ended)?;
        receiver.recv().map_err(|_| SwitchError::Ended)
    }

    /// Begins to stop: accepts nothing more, and ends when all running requests have their responses, or the time for that is
    /// over. [`Switch::wait`] waits for it.
    pub fn stop(&self) {
        // One that has ended needs no telling.
        let _ = self.requests.send(Order::Stop);
    }

    /// Ends now, whatever is running.
    pub fn end(&self) {
        let _ = self.requests.send(Order::End);
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits for its end.
    pub fn wait(&mut self) -> Result<(), SwitchError> {
        let Some(thread) = self.thread.take() else { return Ok(()) };
        thread.join().map_err(|_| SwitchError::Start("a thread panicked: this is a bug of Assay".into()))?
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        self.end();
        // A caller that needs its result waits for it.
        let _ = self.wait();
    }
}

/// Finds out before anything changes that a log could not be written.
fn check_log(config: &Config) -> Result<(), SwitchError> {
    let Some(log) = &config.access_log else { return Ok(()) };
    let failed = |cause| SwitchError::Log { file: log.file.display().to_string(), cause };
    LogWriter::open(log).map(drop).map_err(failed)
}
