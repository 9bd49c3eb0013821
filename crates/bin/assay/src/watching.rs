//! Watching a run from outside. Clients of `--serve`, and the collector that `--otlp` names.

use std::net::SocketAddr;

use assay_lab::RunPlan;
use assay_report::serve::{
    OtlpCollector, RunIdentity, WatchSettings, Watcher, from_environment, listen_address,
};
use clap::Args;

use crate::exit::Failure;
use crate::interrupt::Interrupts;
use crate::listeners::Listeners;
use crate::live::Style;
use crate::opened;
use crate::output;

/// Flags for watching a run from outside.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Watching")]
pub struct WatchArgs {
    /// Serve the live report and metrics for Prometheus at ADDR, a port or address:port; a port alone is on loopback
    #[arg(long, value_name = "ADDR", value_parser = listen_address)]
    pub serve: Option<SocketAddr>,
    /// Go on serving when the run has ended, until Ctrl-C
    #[arg(long, requires = "serve")]
    pub keep_serving: bool,
    /// Send metrics to an OpenTelemetry collector (OTLP over http) every 5 seconds; `env`: to where
    /// OTEL_EXPORTER_OTLP_METRICS_ENDPOINT or OTEL_EXPORTER_OTLP_ENDPOINT says
    #[arg(long, value_name = "URL", value_parser = collector)]
    pub otlp: Option<OtlpCollector>,
}

fn collector(url: &str) -> Result<OtlpCollector, String> {
    from_environment(url, |name| std::env::var(name).ok()).map_err(|error| error.to_string())
}

impl WatchArgs {
    /// Begins to watch, if that is wanted.
    pub fn begin(
        &self,
        plan: &RunPlan,
        listeners: &mut Listeners,
        style: Style,
    ) -> Result<Option<Watching>, Failure> {
        if self.serve.is_none() && self.otlp.is_none() {
            return Ok(None);
        }
        let about = RunIdentity {
            workload: plan.workload.name.clone(),
            target: plan.target.name(),
            seed: plan.seed,
            version: plan.assay_version.clone(),
        };
        let settings = WatchSettings { serve: self.serve, collector: self.otlp.clone() };
        let (later, said) = std::sync::mpsc::channel();
        let say = move |words: String| {
            let words = format!("note: {words}\n");
            // A screen is no place for lines from elsewhere: they are said when it is gone.
            match style {
                Style::Lines => output::eprint(&words),
                Style::Screen => drop(later.send(words)),
            }
        };
        let watcher = Watcher::start(settings, about, listeners.join(), say);
        let watching = Watching { watcher: watcher.map_err(Failure::usage)?, said, keep: self.keep_serving };
        if let Some(url) = watching.url() {
            output::say(&format!("watch at {url}"));
        }
        let open = watching.watcher.address();
        if let Some(note) =
            open.and_then(|at| opened::note(at, "read the live report and its metrics", "--serve"))
        {
            output::eprint(&note);
        }
        Ok(Some(watching))
    }
}

/// A run that is watched.
pub struct Watching {
    watcher: Watcher,
    /// Messages that were held back while a screen was on.
    said: std::sync::mpsc::Receiver<String>,
    keep: bool,
}

impl Watching {
    fn url(&self) -> Option<String> {
        self.watcher.address().map(|address| format!("http://{address}/"))
    }

    /// The run has ended, and its report is written: ends watching, at Ctrl-C if the user wants to go on looking. One that came
    /// since `interrupts` was made counts. On its runtime.
    pub async fn end(self, mut interrupts: Interrupts) {
        self.said.try_iter().for_each(|words| output::eprint(&words));
        self.watcher.report_written();
        if let Some(url) = self.url().filter(|_| self.keep) {
            output::say(&format!("the report stays at {url} until Ctrl-C"));
            interrupts.next().await;
        }
        self.watcher.finish();
    }
}
