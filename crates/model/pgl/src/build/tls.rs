//! `ssl_wraps`: TLS on the legs of a run.
//!
//! Web Polygraph gives each agent a wrap of its own. Here all agents of a run have the same TLS settings, as with the flags of
//! the command line: the agents of a kind (robots, servers, proxies) offer the union of their wraps, and a run uses the
//! intersection over the kinds, which is what two agents of Web Polygraph could agree on. The probability of resumption is
//! the mean over all robots.

use assay_workload::model::{Tls, TlsCipher, TlsKey, TlsVersion};

use super::Builder;
use crate::diagnostic::{Code, Diagnostic};
use crate::eval::Registrations;
use crate::schema::RecordKind;
use crate::source::Span;
use crate::value::{Record, Value};

/// TLS settings of a wrap, or the union of those of a kind of agents.
struct TlsOffer {
    /// Place of the first wrap.
    span: Span,
    oldest: TlsVersion,
    newest: TlsVersion,
    ciphers: Vec<TlsCipher>,
    has_rsa: bool,
    verified: bool,
    /// Mean probability of resumption, over agents.
    resumption: f64,
}

impl Builder<'_> {
    /// TLS settings of a run; none if no agent has a wrap.
    pub(super) fn tls(&mut self, registrations: &Registrations) -> Option<Tls> {
        let robots = self.kind_offer(registrations, RecordKind::Robot);
        let proxies = self.kind_offer(registrations, RecordKind::Proxy);
        let servers = self.kind_offer(registrations, RecordKind::Server);
        let resumption = robots.as_ref().map(|offer| offer.resumption);
        let verified = robots.as_ref().is_none_or(|offer| offer.verified);
        let has_rsa = [&proxies, &servers].into_iter().flatten().any(|offer| offer.has_rsa);
        let robot_leg = robots.is_some() || proxies.is_some();
        let origin_leg = servers.is_some();
        let mut offers = [robots, proxies, servers].into_iter().flatten();
        let first = offers.next()?;
        let common = offers.fold(first, |common, other| self.intersect(common, &other));
        Some(Tls {
            robots: robot_leg,
            origins: origin_leg,
            oldest: common.oldest,
            newest: common.newest,
            ciphers: if common.ciphers.len() == TlsCipher::ALL.len() { Vec::new() } else { common.ciphers },
            key: if has_rsa { TlsKey::Rsa2048 } else { TlsKey::P256 },
            resumption,
            verified,
        })
    }

    fn intersect(&mut self, common: TlsOffer, other: &TlsOffer) -> TlsOffer {
        let oldest = common.oldest.max(other.oldest);
        let newest = common.newest.min(other.newest);
        let mut ciphers = common.ciphers.clone();
        ciphers.retain(|cipher| other.ciphers.contains(cipher));
        let nothing = match (oldest > newest, ciphers.is_empty()) {
            (true, _) => "version of TLS",
            (_, true) => "cipher",
            _ => return TlsOffer { oldest, newest, ciphers, ..common },
        };
        let message = format!("the `ssl_wraps` of these agents have no {nothing} in common");
        self.diagnostics.add(
            Diagnostic::error(Code::Conflict, other.span, message)
                .label("no connection could be made")
                .secondary(common.span, "the other agents"),
        );
        common
    }

    fn kind_offer(&mut self, registrations: &Registrations, kind: RecordKind) -> Option<TlsOffer> {
        // Weighted by the number of agents with each wrap.
        let mut offers: Vec<(TlsOffer, f64)> = Vec::new();
        for (agent, _) in registrations.used.iter().filter(|(record, _)| record.kind == kind) {
            let count = self.array(agent, "addresses").map_or(1, |(addresses, _)| addresses.count());
            for choice in self.choices(agent, "ssl_wraps") {
                let Value::Record(wrap) = &choice.value else { continue };
                if choice.probability > 0.0 {
                    let offer = self.wrap(wrap, choice.span);
                    offers.push((offer, choice.probability * count.max(1) as f64));
                }
            }
        }
        union(offers)
    }

    fn wrap(&mut self, wrap: &Record, span: Span) -> TlsOffer {
        self.warn_unsupported_fields(wrap);
        let (oldest, newest) = self.tls_versions(wrap);
        let keeps_sessions = self.integer(wrap, "session_cache", 0) != Some(0);
        let resumption = self.share(wrap, "session_resumption").unwrap_or(0.0);
        TlsOffer {
            span,
            oldest,
            newest,
            ciphers: self.tls_ciphers(wrap),
            has_rsa: self.has_rsa(wrap),
            verified: self.boolean(wrap, "verify_peer_certificate").unwrap_or(true),
            resumption: if keeps_sessions { resumption } else { 0.0 },
        }
    }

    /// The oldest and the newest version.
    fn tls_versions(&mut self, wrap: &Record) -> (TlsVersion, TlsVersion) {
        use TlsVersion::{Tls12, Tls13};
        const ANY: (TlsVersion, TlsVersion) = (Tls12, Tls13);
        let known = [
            ("any", (ANY, false)),
            ("SSLv2", ((Tls12, Tls12), true)),
            ("SSLv3", ((Tls12, Tls12), true)),
            ("TLSv1", ((Tls12, Tls12), true)),
            ("TLSv1.1", ((Tls12, Tls12), true)),
            ("TLSv1.2", ((Tls12, Tls12), false)),
            ("TLSv1.3", ((Tls13, Tls13), false)),
        ];
        let named = self.keywords(wrap, "protocols", &known).unwrap_or_default();
        if named.items().iter().any(|((_, is_old), _)| *is_old) {
            let at = self.field_span(wrap, "protocols");
            self.warn_outdated(
                at,
                "versions of TLS before 1.2 must not be used (RFC 8996)",
                "TLS 1.2 is spoken instead",
            );
        }
        let ranges = named.items().iter().map(|((range, _), _)| *range);
        ranges.reduce(|(a, b), (c, d)| (a.min(c), b.max(d))).unwrap_or(ANY)
    }

    /// The ciphers in order of preference.
    fn tls_ciphers(&mut self, wrap: &Record) -> Vec<TlsCipher> {
        let mut named: Vec<TlsCipher> = Vec::new();
        for choice in self.used_items(wrap, "ciphers") {
            let text = choice.value.to_string();
            for word in text.split([':', ',', ' ']).filter(|word| !word.is_empty()) {
                let (ciphers, is_exact) = nearest_ciphers(word);
                named.extend(ciphers);
                if !is_exact {
                    let instead = match ciphers {
                        [] => "what it takes away or sorts is not looked at",
                        _ => "the nearest cipher that TLS 1.2 and 1.3 still have is used instead",
                    };
                    self.warn_outdated(choice.span, &format!("`{word}` is not implemented"), instead);
                }
            }
        }
        if named.is_empty() {
            return TlsCipher::ALL.to_vec();
        }
        TlsCipher::ALL.into_iter().filter(|cipher| named.contains(cipher)).collect()
    }

    /// True if RSA keys are wanted; all have 2,048 bits.
    fn has_rsa(&mut self, wrap: &Record) -> bool {
        let sizes = self.used_items(wrap, "rsa_key_sizes");
        // 256 bytes are 2,048 bits.
        let other = sizes.iter().find(|choice| !matches!(choice.value, Value::Size(256.0)));
        if let Some(other) = other {
            self.warn_outdated(other.span, "keys of RSA have 2,048 bits here", "this size is not used");
        }
        !sizes.is_empty()
    }

    /// Warns, once per program, that an outdated setting is replaced.
    fn warn_outdated(&mut self, at: Span, message: &str, label: &str) {
        let diagnostic = Diagnostic::warning(Code::Unsupported, at, message).label(label);
        self.diagnostics.add_once(format!("tls {message}"), diagnostic);
    }
}

/// The union of weighted offers, with the weighted mean of the probability of resumption.
fn union(offers: Vec<(TlsOffer, f64)>) -> Option<TlsOffer> {
    let total: f64 = offers.iter().map(|(_, weight)| weight).sum();
    let weighted = offers.iter().map(|(offer, weight)| offer.resumption * weight);
    let resumption = weighted.sum::<f64>() / total;
    let all = offers.into_iter().map(|(offer, _)| offer);
    let all = all.reduce(|mut all, other| {
        (all.oldest, all.newest) = (all.oldest.min(other.oldest), all.newest.max(other.newest));
        all.ciphers.extend(other.ciphers);
        all.has_rsa |= other.has_rsa;
        all.verified &= other.verified;
        all
    })?;
    let ciphers = TlsCipher::ALL.into_iter().filter(|cipher| all.ciphers.contains(cipher)).collect();
    Some(TlsOffer { resumption, ciphers, ..all })
}

/// The ciphers nearest to a word of OpenSSL's cipher strings or a name of IANA's registry, and whether it means exactly them.
fn nearest_ciphers(word: &str) -> (&'static [TlsCipher], bool) {
    const EVERY: &[TlsCipher] = &TlsCipher::ALL;
    let upper = word.to_ascii_uppercase();
    match upper.as_str() {
        "ALL" | "DEFAULT" | "HIGH" | "COMPLEMENTOFDEFAULT" => return (EVERY, true),
        _ if upper.starts_with(['!', '-', '+', '@']) => return (&[], false),
        _ => {}
    }
    let is_sealed = upper.contains("GCM") || upper.contains("POLY1305");
    if upper.contains("CHACHA20") {
        (&[TlsCipher::Chacha20], is_sealed)
    } else if upper.contains("AES256") || upper.contains("AES_256") {
        (&[TlsCipher::Aes256], is_sealed)
    } else {
        (&[TlsCipher::Aes128], is_sealed && (upper.contains("AES128") || upper.contains("AES_128")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_ciphers_mean_the_nearest_that_is_left() {
        use TlsCipher::{Aes128, Aes256, Chacha20};
        for (word, ciphers, is_exact) in [
            ("ALL", &TlsCipher::ALL[..], true),
            ("ECDHE-RSA-AES128-GCM-SHA256", &[Aes128], true),
            ("TLS_AES_256_GCM_SHA384", &[Aes256], true),
            ("ECDHE-ECDSA-CHACHA20-POLY1305", &[Chacha20], true),
            ("AES256-SHA", &[Aes256], false),
            ("RC4-MD5", &[Aes128], false),
            ("!aNULL", &[], false),
        ] {
            assert_eq!(nearest_ciphers(word), (ciphers, is_exact), "{word}");
        }
    }
}
