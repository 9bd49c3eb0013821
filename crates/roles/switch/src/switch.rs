//! A running switch: start, counters, reload, stop.

use std::io;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::JoinHandle;

use assay_net::listen::advice;
use assay_net::tls::server::TlsServer;
use thiserror::Error;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::access_log::AccessLogWriter;
use crate::config::Config;
use crate::control::{ControlRequest, Controller, bind};
use crate::tally::SwitchSnapshot;
use crate::tls::{TlsContext, TlsError};

/// Reasons for which a switch does not start or reload. Causes are part of the message, and so no `source`.
#[derive(Debug, Error)]
pub enum SwitchError {
    #[error("cannot listen on {address}: {cause}; {}", advice(cause))]
    Listen { address: SocketAddr, cause: io::Error },
    #[error("cannot write the access log {file}: {cause}; make its directory first, or name another file")]
    Log { file: String, cause: io::Error },
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("cannot start the switch's threads: {0}")]
    Start(io::Error),
    #[error("cannot start the switch's threads: a worker panicked: this is a bug of Assay")]
    WorkerPanicked,
    #[error("cannot start the switch's threads: a thread panicked: this is a bug of Assay")]
    ControlPanicked,
    /// Worker threads are only started with the switch.
    #[error("the number of workers changes from {0} to {1}: that needs a restart; all is as it was")]
    Workers(usize, usize),
    #[error("the switch has ended")]
    Ended,
}

/// A running switch, on threads of its own.
#[derive(Debug)]
pub struct Switch {
    /// Current TLS server, whose ticket keys outlive a reload.
    tls: Option<TlsServer>,
    requests: UnboundedSender<ControlRequest>,
    thread: Option<JoinHandle<Result<(), SwitchError>>>,
    addresses: Vec<SocketAddr>,
    metrics: Option<SocketAddr>,
}

impl Switch {
    /// Starts a switch. Connections are accepted when this returns.
    pub fn start(config: Config) -> Result<Self, SwitchError> {
        check_log(&config)?;
        let tls_context = TlsContext::read(&config)?;
        let tls = tls_context.clients.clone();
        let mut bound = Vec::new();
        for address in config.addresses() {
            bound.push(bind(address, config.workers)?);
        }
        let addresses: Vec<SocketAddr> = bound.iter().map(|bound| bound.actual).collect();
        let metrics = config.metrics.map(|address| bind(address, 1)).transpose()?;
        let metrics_address = metrics.as_ref().map(|bound| bound.actual);
        let (requests, requested) = unbounded_channel();
        let (ready, started) = sync_channel(1);
        let thread = std::thread::Builder::new()
            .name("switch".into())
            .spawn(move || Controller::run(config, tls_context, bound, metrics, requested, ready))
            .map_err(SwitchError::Start)?;
        let mut switch = Self { tls, requests, thread: Some(thread), addresses, metrics: metrics_address };
        // Without a message the thread could not start; its own error is the reason.
        if started.recv().is_err() {
            switch.wait()?;
            return Err(SwitchError::Ended);
        }
        Ok(switch)
    }

    /// Listening addresses, with the ports that the system assigned: in the clear first, then with TLS.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Address at which counters are served.
    pub fn metrics(&self) -> Option<SocketAddr> {
        self.metrics
    }

    /// Counters so far.
    pub fn snapshot(&self) -> Result<SwitchSnapshot, SwitchError> {
        let (sender, receiver) = sync_channel(1);
        self.send_request(ControlRequest::Snapshot(sender), &receiver)
    }

    /// Replaces the configuration: when this returns, requests that begin follow it. Requests under way end as they would have.
    /// On an error, nothing changes.
    pub fn reload(&mut self, config: Config) -> Result<(), SwitchError> {
        check_log(&config)?;
        let mut tls_context = TlsContext::read(&config)?;
        tls_context.keep_tickets(self.tls.as_ref());
        let tls = tls_context.clients.clone();
        let (sender, receiver) = sync_channel(1);
        let listening =
            self.send_request(ControlRequest::Reload(Box::new((config, tls_context)), sender), &receiver)??;
        (self.addresses, self.metrics) = (listening.addresses, listening.metrics);
        self.tls = tls.or(self.tls.take());
        Ok(())
    }

    fn send_request<T>(&self, request: ControlRequest, receiver: &Receiver<T>) -> Result<T, SwitchError> {
        self.requests.send(request).map_err(|_| SwitchError::Ended)?;
        receiver.recv().map_err(|_| SwitchError::Ended)
    }

    /// Starts a graceful stop: accepts nothing more, and ends after all running requests have their responses, or the stop
    /// timeout is over. [`Switch::wait`] waits for the end.
    pub fn stop(&self) {
        // A switch that has ended is stopped already.
        let _ = self.requests.send(ControlRequest::Stop);
    }

    /// Ends at once, whatever is running.
    pub fn end(&self) {
        let _ = self.requests.send(ControlRequest::End);
    }

    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits for the end of the switch.
    pub fn wait(&mut self) -> Result<(), SwitchError> {
        let Some(thread) = self.thread.take() else { return Ok(()) };
        thread.join().map_err(|_| SwitchError::ControlPanicked)?
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        self.end();
        // A caller that needs the result has called `wait` itself.
        let _ = self.wait();
    }
}

/// Checks that the log can be opened before anything changes.
fn check_log(config: &Config) -> Result<(), SwitchError> {
    let Some(log) = &config.access_log else { return Ok(()) };
    let failed = |cause| SwitchError::Log { file: log.file.display().to_string(), cause };
    AccessLogWriter::open(log).map(drop).map_err(failed)
}
