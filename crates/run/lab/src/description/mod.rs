//! Descriptions of real proxies: configuration, commands, counters, and known behaviour.
//!
//! A description is a TOML file; `docs/reference/proxies.md` says how one is written. Those in the folder `proxies/`
//! are compiled in; a user's own of the same name wins over them.

mod capacity;
mod read;
mod setting;
mod shipped;
mod template;

use std::collections::BTreeMap;
use std::time::Duration;

use assay_cache::behaviour::CacheBehaviour;
use assay_logs::format::{Dialect, Format};
use assay_net::HEALTH_PATH;
use assay_protocol::message::ProxyCounters;
use serde::Deserialize;

use crate::mode::Mode;
use crate::mode::PeerProtocol;
use crate::process::find_program;

pub use assay_logs::format::ASSAY_FIELDS as ACCESS_LOG_FIELDS;
pub use capacity::{Capacity, CapacityError, Store};
pub use setting::{Setting, SettingError, SettingUnit, SettingValue};
pub use shipped::{described, find};
pub use template::{
    ICP_PORT, ORIGIN_NAME, PeeringVariables, TLS_FILES, TemplateOrigin, TemplatePeer, TemplateVariables,
};

/// A description that cannot be used: which file, which line, which field, what was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct DescriptionError {
    pub message: String,
}

/// A leg of a run: what is between robots and the target, or between the target and origins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Leg {
    /// Between robots and the target.
    Robots,
    /// Between the target and origins.
    Origins,
}

impl Leg {
    /// As it is written in a description.
    pub fn name(self) -> &'static str {
        match self {
            Leg::Robots => "robots",
            Leg::Origins => "origins",
        }
    }

    /// As it is said of the target.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Leg::Robots => "to robots",
            Leg::Origins => "to origins",
        }
    }

    /// The flag that wants TLS on it.
    pub(crate) fn flag(self) -> &'static str {
        match self {
            Leg::Robots => "--robot-tls",
            Leg::Origins => "--origin-tls",
        }
    }
}

/// Description of a proxy: its configuration, commands and counters. Texts marked *template* are filled in with [`TemplateVariables`].
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Description {
    /// Name on the command line: small letters, digits and `-`.
    pub name: String,
    /// Name for people.
    pub title: String,
    /// Debian package that brings it, named when the program is missing.
    #[serde(default)]
    pub package: Option<String>,
    /// Modes in which it can be addressed; the first is the default.
    pub modes: Vec<Mode>,
    /// Whether it speaks HTTP/2 to clients, in clear and with prior knowledge; none: it does not.
    #[serde(default)]
    pub http2: Option<Http2Support>,
    /// Whether it can send requests to origins over HTTP/2, in clear and over TLS, as a reverse proxy.
    #[serde(default)]
    pub origin_http2: bool,
    /// The legs on which it can speak TLS, as a reverse proxy.
    #[serde(default)]
    pub tls: Vec<Leg>,
    /// User that owns the work directory when the lab runs as root.
    #[serde(default)]
    pub user: Option<String>,
    /// Documented behaviour that a reader of the results should know, a sentence each.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Directories to make in the work directory.
    #[serde(default)]
    pub directories: Vec<String>,
    /// Own record of every request.
    #[serde(default)]
    pub access_log: Option<AccessLog>,
    /// Other files of the work directory that are kept in the run directory, beside the written ones.
    #[serde(default)]
    pub logs: Vec<String>,
    /// Settings beside memory, disk and processors, by name.
    #[serde(default, rename = "setting")]
    pub settings: BTreeMap<String, Setting>,
    /// Command that prints the version.
    pub version: VersionCommand,
    /// Files to write into the work directory.
    #[serde(default, rename = "file")]
    pub files: Vec<FileTemplate>,
    /// Programs to run, in turn, before the start; each must end with success.
    #[serde(default, rename = "prepare")]
    pub prepare: Vec<ProgramTemplate>,
    /// The proxy itself, in the foreground.
    pub start: ProgramTemplate,
    /// Program that speaks TLS to robots in its place, if it cannot.
    #[serde(default)]
    pub tls_terminator: Option<TlsTerminator>,
    /// Programs that run beside it once it is ready: log writers.
    #[serde(default, rename = "companion")]
    pub companions: Vec<ProgramTemplate>,
    /// Programs that empty its cache while it runs, in turn; none: only a restart does.
    #[serde(default)]
    pub empty: Vec<ProgramTemplate>,
    /// Check by which it counts as started.
    #[serde(default)]
    pub ready: ReadyCheck,
    /// Signal that stops it, and its timeout.
    #[serde(default)]
    pub stop: StopPolicy,
    /// Sources of its counters.
    #[serde(default)]
    pub counters: Vec<CounterSource>,
    /// Sizes that its stores accept.
    #[serde(default)]
    pub capacity: Capacity,
    /// Behaviour where the standard leaves a choice, for the ideal hit ratio.
    #[serde(default)]
    pub behaviour: CacheBehaviour,
    /// Protocols towards other caches.
    #[serde(default)]
    pub hierarchy: Hierarchy,
    /// Values of `settings`, chosen or by default.
    #[serde(skip)]
    pub chosen: BTreeMap<String, SettingValue>,
    /// The text that this was read from, for the run directory.
    #[serde(skip)]
    pub source: String,
}

/// Versions of HTTP that a proxy with HTTP/2 speaks at one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Http2Support {
    /// HTTP/2 alone.
    Only,
    /// Beside HTTP/1.1: what a connection begins with decides.
    WithHttp1,
    /// Over TLS only, where both sides agree on it (ALPN).
    WithTls,
}

/// The protocols by which a proxy queries other caches and is queried by them; nothing: it stands alone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Hierarchy {
    /// Protocols by which it can query siblings.
    pub siblings: Vec<PeerProtocol>,
    /// Protocols by which it can query parents.
    pub parents: Vec<PeerProtocol>,
    /// The protocols by which others can query it.
    pub serves: Vec<PeerProtocol>,
    /// Whether it can send everything through one parent, and knows nothing of several.
    pub one_parent: bool,
}

/// Command that prints a version, and the text before it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename = "Version", deny_unknown_fields, rename_all = "kebab-case")]
pub struct VersionCommand {
    pub command: Vec<String>,
    /// The version begins behind the first occurrence of this text, and ends before white space or `)` or
    /// `,`.
    pub after: String,
}

/// A file that is written before the start.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FileTemplate {
    /// Path below the work directory.
    pub path: String,
    /// Content. *Template.*
    pub text: String,
}

/// A program and its arguments.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename = "Program", deny_unknown_fields, rename_all = "kebab-case")]
pub struct ProgramTemplate {
    /// Program and arguments. *Templates;* an argument that comes out empty is left out.
    pub command: Vec<String>,
    /// Environment, beside the lab's own. *Templates.*
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
}

/// A TLS terminator: it listens where robots connect, and passes what it decrypts on to the proxy. It runs only where robots speak TLS
/// to the proxy, from before that is ready to the end, and counts as part of it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TlsTerminator {
    /// Name for people.
    pub title: String,
    /// Debian package that brings it, named when it is missing.
    #[serde(default)]
    pub package: Option<String>,
    /// Command that prints its version.
    pub version: VersionCommand,
    /// A file or a socket of the proxy, below the work directory, that must be there before it is started.
    #[serde(default)]
    pub after: Option<String>,
    /// Program and arguments. *Templates;* an argument that comes out empty is left out.
    pub command: Vec<String>,
}

impl TlsTerminator {
    /// Program, where that is not installed on this machine.
    pub fn missing(&self) -> Option<&str> {
        self.command.first().map(String::as_str).filter(|program| find_program(program).is_none())
    }

    pub fn program(&self) -> ProgramTemplate {
        ProgramTemplate { command: self.command.clone(), environment: Default::default() }
    }
}

/// A proxy's own access log.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct AccessLog {
    /// The file, below the work directory.
    pub path: String,
    /// Format of a line: `{field}` for each field, and what stands between them. More blanks than one are as one.
    pub format: String,
}

impl AccessLog {
    /// Checks its format.
    pub(super) fn check(&self) -> Result<(), assay_logs::format::FormatError> {
        Format::compile(Dialect::Assay, &self.format).map(drop)
    }
}

/// Check by which a proxy counts as started: a request through it to each origin gets a 200 response.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename = "Ready", default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ReadyCheck {
    pub path: String,
    /// Seconds to wait.
    pub timeout_s: f64,
}

impl Default for ReadyCheck {
    fn default() -> Self {
        Self { path: HEALTH_PATH.into(), timeout_s: 30.0 }
    }
}

/// Signal that stops a proxy, and the time that it has.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename = "Stop", default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct StopPolicy {
    /// Signal to its first process.
    pub signal: StopSignal,
    /// Seconds before everything of it is killed.
    pub timeout_s: f64,
    /// Time for which it is left alone after the last request, before its counters are read for the last time and it is
    /// told to end, in seconds: what it keeps back (log lines, counters) is written by then.
    pub settle_s: f64,
}

impl Default for StopPolicy {
    fn default() -> Self {
        Self { signal: StopSignal::Term, timeout_s: 10.0, settle_s: 0.0 }
    }
}

/// Signals that tell a process to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum StopSignal {
    /// SIGTERM.
    Term,
    /// SIGINT.
    Int,
    /// SIGQUIT.
    Quit,
}

/// Source of counters, which is read once a second, with their names there.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CounterSource {
    /// Format in which they are written.
    pub format: CounterFormat,
    /// Program that prints them. *Templates.*
    #[serde(default)]
    pub command: Vec<String>,
    /// Or: path to request from the proxy itself. *Template.*
    #[serde(default)]
    pub path: Option<String>,
    /// `Host` of that request; none: where the proxy listens. *Template.*
    #[serde(default)]
    pub host: Option<String>,
    /// Or: socket below the work directory where the proxy accepts commands.
    #[serde(default)]
    pub socket: Option<String>,
    /// Command that is sent there.
    #[serde(default)]
    pub say: Option<String>,
    /// Or: a log below the work directory; occurrences in its new lines are counted.
    #[serde(default)]
    pub log: Option<String>,
    /// Our counter, from the sum of the source's; each may have a factor: `-name`, `1024*name`.
    pub names: BTreeMap<CounterName, Vec<CounterTerm>>,
}

/// Format in which a source writes its counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CounterFormat {
    /// `{"counters": {"NAME": {"value": 1}}}`.
    VarnishstatJson,
    /// Any JSON; a number is named by the keys that lead to it, joined by dots.
    Json,
    /// Lines `name = 1` or `name: 1`.
    Lines,
    /// HAProxy's table of statistics: `proxy/server.field`, and `all/server.field` for the sum over all.
    HaproxyCsv,
    /// A log: each name is a word, and counts the lines that it occurs in.
    LogWords,
}

/// An entry of a table of counters that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CounterTableError {
    #[error("unknown variant `{text}`, expected one of {known}")]
    UnknownCounter { text: String, known: String },
    #[error("`{factor}` in `{text}` is not an integer; write `1024*name`")]
    Factor { factor: String, text: String },
    #[error("`{text}` names no counter; write `name`, `-name` or `1024*name`")]
    NoName { text: String },
}

/// The name of one of our own counters of a proxy; a description writes `-` for `_`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct CounterName(String);

impl CounterName {
    /// The name in the record.
    pub fn name(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for CounterName {
    type Error = CounterTableError;

    fn try_from(text: String) -> Result<Self, CounterTableError> {
        let name = text.replace('-', "_");
        match ProxyCounters::default().add(&name, 0) {
            true => Ok(Self(name)),
            false => {
                let known: Vec<String> =
                    ProxyCounters::names().map(|name| format!("`{}`", name.replace('_', "-"))).collect();
                Err(CounterTableError::UnknownCounter { text, known: known.join(", ") })
            }
        }
    }
}

/// One counter of a source, with a factor.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub struct CounterTerm {
    /// Factor.
    pub factor: i64,
    pub name: String,
}

impl TryFrom<String> for CounterTerm {
    type Error = CounterTableError;

    fn try_from(text: String) -> Result<Self, CounterTableError> {
        let (sign, rest) = match text.strip_prefix('-') {
            Some(rest) => (-1, rest),
            None => (1, text.as_str()),
        };
        let (factor, name) = match rest.split_once('*') {
            Some((factor, name)) => match factor.trim().parse::<u32>() {
                Ok(factor) => (i64::from(factor), name),
                Err(_) => {
                    return Err(CounterTableError::Factor { factor: factor.to_owned(), text });
                }
            },
            None => (1, rest),
        };
        let name = name.trim();
        if name.is_empty() {
            return Err(CounterTableError::NoName { text });
        }
        Ok(Self { factor: sign * factor, name: name.to_owned() })
    }
}

impl Description {
    /// Reads a description; `file` names it in errors.
    pub fn read(file: &str, text: &str) -> Result<Self, DescriptionError> {
        read::read(file, text)
    }

    /// Makes choices among its settings; those that are not named stay as they are. What is wrong, when a name or a
    /// value is unknown.
    pub fn set(&mut self, wanted: &BTreeMap<String, String>) -> Result<(), DescriptionError> {
        for (name, text) in wanted {
            let wrong = |error: SettingError| DescriptionError { message: error.to_string() };
            let setting = setting::find_setting(&self.settings, &self.title, name).map_err(wrong)?;
            let chosen = setting.choose(&self.title, name, text).map_err(wrong)?;
            if let Some(stores) = setting.stores.get(text) {
                self.capacity.stores.clone_from(stores);
            }
            self.chosen.insert(name.clone(), chosen);
        }
        Ok(())
    }

    /// Every setting as it is, as it can be typed.
    pub fn settings_as_typed(&self) -> BTreeMap<String, String> {
        self.chosen.iter().map(|(name, chosen)| (name.clone(), chosen.to_string())).collect()
    }

    /// Every log that is kept; the access log first.
    pub fn all_logs(&self) -> impl Iterator<Item = &String> {
        self.access_log.iter().map(|log| &log.path).chain(&self.logs)
    }

    /// The bytes that its stores can hold with these capacities.
    pub fn capacity_bytes(&self, memory_bytes: u64, disk_bytes: u64) -> u64 {
        let share = |store, bytes| if self.capacity.stores.contains(&store) { bytes } else { 0 };
        let (memory, disk) = (share(Store::Memory, memory_bytes), share(Store::Disk, disk_bytes));
        if self.capacity.inclusive && disk > 0 { disk } else { memory.saturating_add(disk) }
    }

    /// Time that it may take to become ready.
    pub fn ready_timeout(&self) -> Duration {
        Duration::try_from_secs_f64(self.ready.timeout_s).unwrap_or(Duration::from_secs(30))
    }

    /// Time for which it is left alone before it is stopped.
    pub fn settling(&self) -> Duration {
        Duration::try_from_secs_f64(self.stop.settle_s).unwrap_or_default()
    }

    /// Time that it may take to stop.
    pub fn stop_timeout(&self) -> Duration {
        Duration::try_from_secs_f64(self.stop.timeout_s).unwrap_or(Duration::from_secs(10))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(format: &str) -> Result<(), String> {
        AccessLog { path: "access.log".into(), format: format.into() }
            .check()
            .map_err(|error| error.why.to_string())
    }

    #[test]
    fn a_format_names_known_fields_with_something_between_them() {
        assert_eq!(
            check("{time-s} {duration-ms} {outcome}/{status} {bytes} {method} {url} {other} {other}"),
            Ok(())
        );
        assert!(check("{time-s} {code} {url}").unwrap_err().contains("`{code}` is no field"));
        assert!(check("{time-s} {status}{url}").unwrap_err().contains("nothing stands between"));
        assert!(check("{time-s} {status} {url").unwrap_err().contains("has no end"));
        assert!(check("{time-s} {status} {status} {path}").unwrap_err().contains("twice"));
        assert!(check("{time-s} {status}").unwrap_err().contains("{url}, {path}"));
        assert!(check("").is_err());
    }
}
