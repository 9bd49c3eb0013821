//! Spec of the built-in proxy.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use assay_base::settings::units;
use assay_cache::behaviour::CacheBehaviour;
use assay_cache::policy::Admission;
use assay_cache::policy::replacement::Replacement;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use assay_net::tls::settings::{ClientTls, ServerTls};

/// The choices of the built-in proxy where RFC 9111 leaves them to a cache.
pub const BEHAVIOUR: CacheBehaviour = CacheBehaviour {
    conditional_fills: true,
    range_fills: true,
    validation_updates: true,
    reloads_reach_origin: true,
    ..CacheBehaviour::PLAIN
};

/// Format of a line of the access log, in the words of descriptions of proxies. Times are those of the end of a response; bytes are its
/// body's.
pub const ACCESS_LOG_FORMAT: &str =
    "{time-s} {duration-us} {client} {outcome}/{status} {bytes} {method} {url} {hierarchy} {xact}";

/// Spec of the built-in caching proxy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProxySpec {
    /// Pseudonym in `Via` and `Cache-Status`; caches that know each other need names of their own.
    #[serde(default = "usual_name")]
    pub name: String,
    pub listen: SocketAddr,
    /// Worker threads (one store for all of them is not promised; today one).
    pub threads: u32,
    /// Processors the threads are pinned to, round robin; empty: not pinned.
    pub cpus: Vec<u32>,
    /// Bound on the memory store, in bytes, overhead per object included.
    pub memory_bytes: u64,
    /// Staleness up to which a response may be served when its origin fails and the response says nothing about that (`stale-if-error`), in
    /// seconds; 0: not at all.
    #[serde(default)]
    pub stale_if_error_s: u64,
    /// Reverse: real origins by host; one that is not listed goes to the first, in whatever form a request names it, and no other address
    /// is ever connected to. Empty (forward): a whole URL goes to the host that it names.
    pub origins: Vec<OriginRoute>,
    /// Access log in [`ACCESS_LOG_FORMAT`]; none: not logged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_log: Option<PathBuf>,
    /// Other caches; none: it stands alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cooperation: Option<Cooperation>,
    /// Prefetching; none: off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefetch: Option<Prefetch>,
    /// Admission and replacement.
    #[serde(default)]
    pub storing: Storing,
    /// TLS towards clients; none: in the clear.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<ServerTls>,
    /// TLS towards origins; none: in the clear.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin_tls: Option<ClientTls>,
    /// Origins are spoken to over HTTP/2, which they have to agree on over TLS, and to know in the clear.
    #[serde(default)]
    pub origin_http2: bool,
}

/// Admission, freshness and replacement of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "StoringText", into = "StoringText")]
pub struct Storing {
    pub policy: Replacement,
    pub admission: Admission,
    /// Freshness lifetime of a response that states none, in seconds.
    pub default_lifetime_s: u64,
}

impl Default for Storing {
    fn default() -> Self {
        let (policy, admission) = (Replacement::default(), Admission::default());
        Self { policy, admission, default_lifetime_s: DEFAULT_LIFETIME_S }
    }
}

/// [`Storing`] as it is serialised.
#[derive(Serialize, Deserialize)]
struct StoringText {
    policy: String,
    admission: String,
    ttl: String,
}

impl TryFrom<StoringText> for Storing {
    type Error = ProxySettingError;

    fn try_from(words: StoringText) -> Result<Self, ProxySettingError> {
        let mut chosen = Chosen::default();
        chosen.set(POLICY, &words.policy)?;
        chosen.set(ADMISSION, &words.admission)?;
        chosen.set(TTL, &words.ttl)?;
        Ok(chosen.storing)
    }
}

impl From<Storing> for StoringText {
    fn from(storing: Storing) -> Self {
        Self {
            policy: storing.policy.name().into(),
            admission: admission_word(storing.admission),
            ttl: ttl_word(storing.default_lifetime_s),
        }
    }
}

/// A lifetime as descriptions of other proxies have it, so that the two can be compared: `1d`, `90s`, `0`.
fn ttl_word(lifetime_s: u64) -> String {
    let units = [("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)];
    let fitting = units.into_iter().find(|(_, factor)| lifetime_s > 0 && lifetime_s.is_multiple_of(*factor));
    fitting.map_or_else(|| "0".into(), |(unit, factor)| format!("{}{unit}", lifetime_s / factor))
}

fn admission_word(admission: Admission) -> String {
    match admission {
        Admission::All => "all".into(),
        Admission::SecondRequest => "second".into(),
        Admission::TinyLfu => "tinylfu".into(),
        Admission::UpTo(bytes) => bytes.to_string(),
    }
}

const PREFETCH: &str = "prefetch";
const POLICY: &str = "policy";
const ADMISSION: &str = "admission";
const TTL: &str = "ttl";

/// A day, as the descriptions of all other proxies have it.
const DEFAULT_LIFETIME_S: u64 = 86_400;

/// Settings of the built-in proxy that users choose.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Chosen {
    /// Prefetching; none: off.
    pub prefetch: Option<Prefetch>,
    pub storing: Storing,
}

/// A setting that does not exist, or a value that it does not accept.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ProxySettingError {
    #[error("the built-in proxy has no setting `{name}`; it has {}", Chosen::SETTINGS.map(|setting| setting.name).join(", "))]
    Unknown { name: String },
    #[error("{name} = {value}: it takes {accepted}")]
    Value { name: String, value: String, accepted: String },
}

/// A setting of the built-in proxy.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    pub name: &'static str,
    pub about: &'static str,
    /// Words that the setting accepts.
    pub words: &'static [&'static str],
    /// Other accepted values, as the end of a sentence.
    pub or: &'static str,
}

impl Setting {
    /// Accepted values, in a sentence.
    pub fn allowed(&self) -> String {
        format!("one of {}{}", self.words.join(", "), self.or)
    }
}

impl Chosen {
    /// All settings; the first word is the default.
    pub const SETTINGS: [Setting; 4] = [
        Setting {
            name: PREFETCH,
            about: "What it fetches before it is requested: what pages are shown with, or the pages that they lead to as well",
            words: &Prefetch::WORDS,
            or: "",
        },
        Setting {
            name: POLICY,
            about: "What it evicts when there is no room",
            words: &Replacement::NAMES,
            or: "",
        },
        Setting {
            name: ADMISSION,
            about: "What it stores: everything, objects of at most a size, those that were requested before, or those that were requested more \
                    often lately than what would have to go for them",
            words: &["all", "second", "tinylfu"],
            or: ", or a size",
        },
        Setting {
            name: TTL,
            about: "How long a response that does not say when it expires stays fresh, in whole seconds; with 0 it is confirmed each time",
            words: &["1d"],
            or: ", or another time",
        },
    ];

    /// Sets the setting of this name.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), ProxySettingError> {
        let Some(setting) = Self::SETTINGS.iter().find(|setting| setting.name == name) else {
            return Err(ProxySettingError::Unknown { name: name.to_owned() });
        };
        let known = match name {
            PREFETCH => Prefetch::from_word(value).map(|prefetch| self.prefetch = prefetch),
            POLICY => Replacement::from_name(value).map(|policy| self.storing.policy = policy),
            TTL => ttl_s(value).map(|lifetime_s| self.storing.default_lifetime_s = lifetime_s),
            _ => admission(value).map(|admission| self.storing.admission = admission),
        };
        known.ok_or_else(|| ProxySettingError::Value {
            name: name.to_owned(),
            value: value.to_owned(),
            accepted: setting.allowed(),
        })
    }

    /// All settings, as they can be typed.
    pub fn as_typed(&self) -> BTreeMap<String, String> {
        let prefetch = self.prefetch.map_or("none", |prefetch| prefetch.word());
        let StoringText { policy, admission, ttl } = self.storing.into();
        let all = [prefetch.to_owned(), policy, admission, ttl];
        let named = Self::SETTINGS.iter().zip(all);
        named.map(|(setting, value)| (setting.name.to_owned(), value)).collect()
    }
}

fn admission(word: &str) -> Option<Admission> {
    match word {
        "all" => Some(Admission::All),
        "second" => Some(Admission::SecondRequest),
        "tinylfu" => Some(Admission::TinyLfu),
        _ => word.parse().ok().or_else(|| units::size(word).ok()).map(Admission::UpTo),
    }
}

fn ttl_s(word: &str) -> Option<u64> {
    if word == "0" {
        return Some(0);
    }
    let time = units::duration(word).ok()?;
    (time.subsec_nanos() == 0).then_some(time.as_secs())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prefetch {
    /// The pages that a page leads to as well, not only what it is shown with.
    pub links: bool,
    /// Most resources for one page.
    pub per_page: u32,
    /// Most bytes for one page.
    pub page_bytes: u64,
    /// Most fetches at once.
    pub at_once: u32,
    /// Most that wait for that; those beyond are dropped.
    pub waiting: u32,
}

impl Prefetch {
    /// Words for [`Prefetch::from_word`].
    pub const WORDS: [&str; 3] = ["none", "embedded", "links"];

    pub fn word(&self) -> &'static str {
        if self.links { "links" } else { "embedded" }
    }

    /// Value of the setting with usual bounds; the outer none: the word is unknown.
    pub fn from_word(word: &str) -> Option<Option<Self>> {
        let usual = |links| Self { links, per_page: 64, page_bytes: 8 << 20, at_once: 16, waiting: 1024 };
        match word {
            "none" => Some(None),
            "embedded" => Some(Some(usual(false))),
            "links" => Some(Some(usual(true))),
            _ => None,
        }
    }
}

/// The name of a proxy that stands alone.
pub fn usual_name() -> String {
    "assay".into()
}

/// Cooperation with other caches.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cooperation {
    /// Address at which ICP queries are received, and from which they are sent; none: no ICP.
    pub icp: Option<SocketAddr>,
    /// Addresses that may send ICP queries, beside the peers.
    pub clients: Vec<IpAddr>,
    /// The caches to query, in order of preference.
    pub peers: Vec<Peer>,
    /// Timeout of ICP responses, in milliseconds.
    pub timeout_ms: u64,
    /// Time in milliseconds that is added to each query and each request to another cache, as if
    /// that were the round-trip time between the two.
    #[serde(default)]
    pub delay_ms: u64,
    /// Whether responses from a sibling are not stored here, too.
    pub proxy_only: bool,
    /// Whether requests that no parent could fetch fail: none goes to the origin.
    pub never_direct: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peer {
    pub name: String,
    pub relation: Relation,
    /// Address for HTTP; requests to it are in absolute form.
    pub http: SocketAddr,
    /// Address for ICP queries; none: the peer is not queried. Nothing is requested from a sibling without it.
    pub icp: Option<SocketAddr>,
}

/// Kind of peer, by what may be requested from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Relation {
    Sibling,
    /// Any object: a parent fetches what it does not have.
    Parent,
}

/// Authority that stands for every host: named in a whole URL or not, all are behind that one address.
pub const EVERY_HOST: &str = "*";

/// One origin behind the proxy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OriginRoute {
    /// `host:port` as clients say it, or [`EVERY_HOST`].
    pub authority: String,
    pub address: SocketAddr,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_of_a_setting_is_taken_and_others_are_refused_with_what_there_is() {
        for setting in Chosen::SETTINGS {
            let mut chosen = Chosen::default();
            for word in setting.words {
                assert_eq!(chosen.set(setting.name, word), Ok(()));
                let typed = chosen.as_typed();
                assert_eq!(typed[setting.name], *word);
            }
            let refused = chosen.set(setting.name, "much").unwrap_err().to_string();
            assert!(refused.contains(&setting.allowed()), "{refused}");
        }
        let refused = Chosen::default().set("prefetsch", "none").unwrap_err().to_string();
        assert!(refused.contains("it has prefetch, policy, admission, ttl"), "{refused}");
    }

    #[test]
    fn what_is_stored_is_passed_on_in_words() {
        let mut chosen = Chosen::default();
        for (name, value) in [("policy", "s3-fifo"), ("admission", "64KB"), ("ttl", "1m")] {
            assert_eq!(chosen.set(name, value), Ok(()));
        }
        let words = StoringText::from(chosen.storing);
        assert_eq!([&words.policy, &words.admission, &words.ttl], ["s3-fifo", "65536", "1m"]);
        assert_eq!(Storing::try_from(words), Ok(chosen.storing));
        let words = |admission: &str, ttl: &str| StoringText {
            policy: "lru".into(),
            admission: admission.into(),
            ttl: ttl.into(),
        };
        assert_eq!(Storing::try_from(words("all", "1d")), Ok(Storing::default()));
        for (word, lifetime_s) in [("0", 0), ("90s", 90), ("2h", 7_200)] {
            let storing = Storing::try_from(words("all", word));
            assert_eq!(storing, Ok(Storing { default_lifetime_s: lifetime_s, ..Storing::default() }));
            assert_eq!(storing.map(|storing| StoringText::from(storing).ttl), Ok(word.to_owned()));
        }
        for wrong in [words("some", "1d"), words("all", "0.5s"), words("all", "10")] {
            assert!(Storing::try_from(wrong).is_err());
        }
    }
}
