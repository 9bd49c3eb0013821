//! What tests tell a replay.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use assay_load::replay::filter::Filter;
use assay_load::replay::plan::list::Arrivals;
use assay_load::replay::{
    ListSource, LogSource, ReplayError, ReplayOptions, ReplayResults, RequestSource, drive,
};

/// So fast that nothing waits.
const FAST: f64 = 100_000.0;

/// Whatever goes to this address, with patience.
pub fn options(to: SocketAddr) -> ReplayOptions {
    ReplayOptions {
        to,
        forward: false,
        tls: None,
        fields: b"Accept: */*\r\n".to_vec(),
        timeout: Duration::from_secs(30),
        keep_idle: Duration::from_secs(30),
        max_in_flight: 1000,
        xacts: None,
        simulated: None,
        target_waited_us: None,
    }
}

/// These logs, all of them at once.
pub fn log(files: Vec<PathBuf>) -> LogSource {
    let (filter, host) = (Filter::default(), Some("www.example.org".into()));
    LogSource { files, format: None, speed: FAST, host, filter, limit: None, for_ns: None, skips_https: true }
}

/// URLs of host `h`, as often as arrivals say.
pub fn list(file: PathBuf, arrivals: Arrivals) -> ListSource {
    ListSource {
        files: vec![file],
        host: Some("h".into()),
        arrivals,
        once: false,
        for_ns: None,
        skips_https: true,
    }
}

/// Replays, without an interrupt.
pub fn replay(options: ReplayOptions, source: RequestSource) -> Result<ReplayResults, ReplayError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build_local(tokio::runtime::LocalOptions::default())
        .unwrap();
    runtime.block_on(drive(options, source, |_| {}, std::future::pending()))
}

/// A line of a log, of this client and second.
pub fn combined(client: u8, second: u32, request: &str) -> String {
    format!(
        "192.0.2.{client} - - [10/Oct/2025:13:{:02}:{:02} +0000] \"{request}\" 200 5 \"-\" \"-\"\n",
        second / 60,
        second % 60
    )
}
