//! What the lines of a format do not say, which figures are not known for that reason, and what a proxy would have to log.

use crate::document::{NotLogged, Notation};
use crate::format::{Dialect, Fact, FactSet, Format};

/// Something that a log can lack.
struct MissingFact {
    fact: Fact,
    what: &'static str,
    unknown: &'static str,
    /// Fields of the proxies, in the order of [`PROXIES`]; empty: it has none.
    fields: [&'static str; 6],
}

/// Proxies whose notations are listed.
const PROXIES: [(&str, Dialect); 6] = [
    ("nginx", Dialect::Nginx),
    ("httpd", Dialect::Ncsa),
    ("varnishncsa", Dialect::Ncsa),
    ("Squid", Dialect::Squid),
    ("Traffic Server", Dialect::TrafficServer),
    ("HAProxy", Dialect::Haproxy),
];

const MISSING_FACTS: [MissingFact; 8] = [
    MissingFact {
        fact: Fact::Outcome,
        what: "outcome",
        unknown: "hits, misses and hit ratios",
        fields: [
            "$upstream_cache_status",
            "%{cache-status}e",
            "%{Varnish:hitmiss}x",
            "%Ss",
            "%<crc>",
            "%[res.cache_hit]",
        ],
    },
    MissingFact {
        fact: Fact::Duration,
        what: "duration",
        unknown: "response times",
        fields: ["$request_time", "%D", "%D", "%tr", "%<ttms>", "%Ta"],
    },
    MissingFact {
        fact: Fact::Status,
        what: "status",
        unknown: "statuses, URLs that failed, and what other caches would have hit",
        fields: ["$status", "%>s", "%s", "%>Hs", "%<pssc>", "%ST"],
    },
    MissingFact {
        fact: Fact::Bytes,
        what: "bytes",
        unknown: "bytes, byte hit ratios, and what LRU caches would have hit",
        fields: ["$body_bytes_sent", "%b", "%b", "%<st", "%<psql>", "%B"],
    },
    MissingFact {
        fact: Fact::Time,
        what: "time",
        unknown: "rates, and changes over time",
        fields: ["$msec", "%t", "%t", "%ts.%03tu", "%<cqtq>", "%Ts.%ms"],
    },
    MissingFact {
        fact: Fact::Url,
        what: "URL",
        unknown: "URLs, and what other caches would have hit",
        fields: ["\"$request\"", "\"%r\"", "\"%r\"", "%ru", "%<cquc>", "%HU"],
    },
    MissingFact {
        fact: Fact::Agent,
        what: "user agent",
        unknown: "browsers, bots and tools",
        fields: [
            "\"$http_user_agent\"",
            "\"%{User-Agent}i\"",
            "\"%{User-Agent}i\"",
            "\"%{User-Agent}>h\"",
            "\"%<{User-Agent}cqh>\"",
            "%{+Q}[var(txn.user_agent)]",
        ],
    },
    MissingFact {
        fact: Fact::Referrer,
        what: "referrer",
        unknown: "referring sites",
        fields: [
            "\"$http_referer\"",
            "\"%{Referer}i\"",
            "\"%{Referer}i\"",
            "\"%{Referer}>h\"",
            "\"%<{Referer}cqh>\"",
            "%{+Q}[var(txn.referer)]",
        ],
    },
];

/// Facts that some lines of a log lack: all of them state `says`, in this format or in others of the same dialect.
pub(crate) fn missing_facts(format: &Format, says: FactSet) -> Vec<NotLogged> {
    let missing = MISSING_FACTS.iter().filter(|missing| !says.contains(missing.fact));
    missing
        .map(|missing| {
            let fields = PROXIES
                .iter()
                .zip(missing.fields)
                .filter(|((proxy, dialect), _)| may_write(format, proxy, *dialect));
            NotLogged {
                what: missing.what.into(),
                unknown: missing.unknown.into(),
                how: fields
                    .map(|((proxy, _), field)| Notation { proxy: (*proxy).into(), field: field.into() })
                    .collect(),
            }
        })
        .collect()
}

/// Whether a proxy may have written logs of a format.
fn may_write(format: &Format, proxy: &str, dialect: Dialect) -> bool {
    match (format.name.as_str(), format.dialect()) {
        // These have one writer.
        ("vhost-combined", _) => proxy == "httpd",
        ("assay-switch" | "lighttpd", _) => false,
        // nginx writes Combined by default, and httpd can have any format of these.
        ("combined" | "common" | "host-combined" | "host-common", _) => {
            matches!(proxy, "nginx" | "httpd" | "varnishncsa")
        }
        (_, Dialect::W3c | Dialect::Assay) => false,
        (_, own) => own == dialect,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_that_is_recommended_is_understood() {
        for missing in &MISSING_FACTS {
            for ((proxy, dialect), field) in PROXIES.iter().zip(missing.fields) {
                let format = Format::compile(*dialect, field).expect(field);
                assert!(format.facts().contains(missing.fact), "{proxy}: {field} is no {}", missing.what);
            }
        }
    }

    #[test]
    fn what_is_missing_comes_with_the_notations_of_the_proxies_that_may_have_written_the_log() {
        let of = |name: &str| -> Vec<(String, Vec<String>)> {
            let format = Format::parse(name).unwrap();
            let missing = missing_facts(&format, format.facts()).into_iter();
            missing
                .map(|missing| (missing.what, missing.how.into_iter().map(|n| n.proxy).collect()))
                .collect()
        };
        let three = ["nginx", "httpd", "varnishncsa"].map(String::from).to_vec();
        assert_eq!(of("combined"), [("outcome".into(), three.clone()), ("duration".into(), three)]);
        let squid = vec!["Squid".to_owned()];
        assert_eq!(of("squid"), [("user agent".into(), squid.clone()), ("referrer".into(), squid)]);
        assert_eq!(of("assay-switch"), [("outcome".into(), Vec::new())]);
        assert!(of("lighttpd").iter().all(|(_, how)| how.is_empty()));
        let own = of("$msec $status \"$request\" $body_bytes_sent \"$http_user_agent\" \"$http_referer\"");
        assert_eq!(own.iter().map(|(what, _)| what.as_str()).collect::<Vec<_>>(), ["outcome", "duration"]);
        assert!(own.iter().all(|(_, how)| *how == ["nginx"]));
    }
}
