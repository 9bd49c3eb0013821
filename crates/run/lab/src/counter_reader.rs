//! Reads the counters of a real proxy: by requests, from programs, sockets and logs, as its description says.

use std::io;
use std::process::ExitStatus;

use assay_host::link::Namespace;
use assay_protocol::message::ProxyCounters;

use crate::counters::{self, CounterTextError, LogFollower};
use crate::description::{CounterFormat, CounterSource, TemplateVariables};
use crate::error::LabError;
use crate::probe::{self, Endpoint};
use crate::process;
use crate::real_proxy::QUICK;
use crate::tls::ProxyTls;

/// Counters of a proxy that cannot be read. Causes are part of the message, and so no `source` of the error.
#[derive(Debug, thiserror::Error)]
pub enum CounterReadError {
    #[error("{log}: {cause}")]
    Log { log: String, cause: io::Error },
    #[error("{0}")]
    Text(CounterTextError),
    #[error("{0}")]
    Template(minijinja::Error),
    #[error("{0}")]
    Tls(LabError),
    #[error("{path} got status {status}")]
    Status { path: String, status: u16 },
    #[error("{path}: {cause}")]
    Request { path: String, cause: io::Error },
    #[error("{socket}: {cause}")]
    Socket { socket: String, cause: io::Error },
    #[error("`{command}`: {cause}")]
    Run { command: String, cause: io::Error },
    #[error("`{command}` ended with {status}: {words}")]
    Failed { command: String, status: ExitStatus, words: String },
}

impl From<CounterTextError> for CounterReadError {
    fn from(cause: CounterTextError) -> Self {
        Self::Text(cause)
    }
}

impl From<minijinja::Error> for CounterReadError {
    fn from(cause: minijinja::Error) -> Self {
        Self::Template(cause)
    }
}

impl From<LabError> for CounterReadError {
    fn from(cause: LabError) -> Self {
        Self::Tls(cause)
    }
}

/// Reads a proxy's counters.
#[derive(Debug)]
pub struct CounterReader {
    sources: Vec<(CounterSource, LogFollower)>,
    settings: TemplateVariables,
    cpus: Vec<u32>,
    namespace: Option<Namespace>,
    tls: Option<ProxyTls>,
    /// Number of requests that read the proxy's counters.
    requested: i64,
    /// Last text of each source that has one: file name and text.
    raw: Vec<(String, String)>,
}

impl CounterReader {
    /// A reader of these sources, on these processors, in this network (the lab's own when none), and over TLS if the proxy speaks it.
    pub(crate) fn new(
        sources: &[CounterSource],
        settings: TemplateVariables,
        cpus: Vec<u32>,
        namespace: Option<Namespace>,
        tls: Option<ProxyTls>,
    ) -> Self {
        let sources = sources.iter().map(|source| (source.clone(), LogFollower::new(source))).collect();
        Self { sources, settings, cpus, namespace, tls, requested: 0, raw: Vec::new() }
    }

    /// True when there is something to read.
    pub fn has_sources(&self) -> bool {
        !self.sources.is_empty()
    }

    /// Reads all of them.
    pub async fn read(&mut self) -> Result<ProxyCounters, CounterReadError> {
        let mut sum = ProxyCounters::default();
        self.raw.clear();
        for (index, (source, follower)) in self.sources.iter_mut().enumerate() {
            if let Some(log) = &source.log {
                let values = follower
                    .read(&self.settings.work.join(log))
                    .map_err(|cause| CounterReadError::Log { log: log.clone(), cause })?;
                counters::translate(source, values, &mut sum);
                continue;
            }
            let tls = self.tls.as_ref();
            let text = fetch(source, &self.settings, &self.cpus, self.namespace.as_ref(), tls).await?;
            let mut values = counters::parse(source.format, &text)?;
            if source.path.is_some() {
                // This request is among those that the response speaks of.
                self.requested += 1;
                values.insert(counters::REQUESTED.into(), self.requested);
            }
            counters::translate(source, &values, &mut sum);
            let extension = match source.format {
                CounterFormat::VarnishstatJson | CounterFormat::Json => "json",
                CounterFormat::HaproxyCsv => "csv",
                CounterFormat::Lines | CounterFormat::LogWords => "txt",
            };
            self.raw.push((format!("counters-{}.{extension}", index + 1), text));
        }
        Ok(sum)
    }

    /// Once the proxy has stopped: reads what it wrote to its logs at its end. None unless all counters come
    /// from logs.
    pub(crate) fn read_logs_again(&mut self) -> Option<ProxyCounters> {
        let mut sum = ProxyCounters::default();
        for (source, follower) in &mut self.sources {
            let values = follower.read(&self.settings.work.join(source.log.as_ref()?)).ok()?;
            counters::translate(source, values, &mut sum);
        }
        (!self.sources.is_empty()).then_some(sum)
    }

    /// The texts that were read last: file name and text.
    pub fn raw(&self) -> &[(String, String)] {
        &self.raw
    }
}

async fn fetch(
    source: &CounterSource,
    settings: &TemplateVariables,
    cpus: &[u32],
    namespace: Option<&Namespace>,
    tls: Option<&ProxyTls>,
) -> Result<String, CounterReadError> {
    if let Some(path) = &source.path {
        let path = settings.fill(path)?;
        let host = match &source.host {
            Some(host) => settings.fill(host)?,
            None => settings.listen.to_string(),
        };
        let address = settings.listen;
        let tls = tls.map_or(Ok(None), |tls| tls.probe(&address.to_string()))?;
        return match probe::get(namespace, Endpoint { address, tls: tls.as_ref() }, &host, &path, QUICK).await
        {
            Ok((200, text)) => Ok(text),
            Ok((status, _)) => Err(CounterReadError::Status { path, status }),
            Err(cause) => Err(CounterReadError::Request { path, cause }),
        };
    }
    if let (Some(socket), Some(say)) = (&source.socket, &source.say) {
        let path = settings.work.join(socket);
        return probe::say(&path, say, QUICK)
            .await
            .map_err(|cause| CounterReadError::Socket { socket: socket.clone(), cause });
    }
    let command = settings.fill_command(&source.command)?;
    let output = process::run_to_end(&command, &settings.work, cpus, namespace, QUICK).await;
    let output = output.map_err(|cause| CounterReadError::Run { command: command.join(" "), cause })?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr).trim_end().to_owned();
        return Err(CounterReadError::Failed { command: command.join(" "), status: output.status, words });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
