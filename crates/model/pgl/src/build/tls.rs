//! `ssl_wraps`: which legs speak TLS, and how.
//!
//! Web Polygraph gives each agent a wrap of its own. Here all agents of a run speak TLS alike, as with the flags of the command
//! line: agents of a kind (robots, servers, proxies) offer what any of their wraps allows, and a run what all kinds have in
//! common, which is what two of Web Polygraph's agents could agree on. The probability of resumption is the mean of all robots.

use assay_workload::model::{Tls, TlsCipher, TlsKey, TlsVersion};

use super::Builder;
use crate::diagnostic::{Code, Diagnostic};
use crate::eval::Registered;
use crate::schema::RecordKind;
use crate::source::Span;
use crate::value::{Record, Value};

/// What the wraps of one kind of agents offer together.
struct Offer {
    /// Where the first wrap is given.
    place: Span,
    oldest: TlsVersion,
    newest: TlsVersion,
    ciphers: Vec<TlsCipher>,
    has_rsa: bool,
    verified: bool,
    /// Mean probability of resumption, over agents.
    resumption: f64,
}

/// The wraps of a kind of agents, each with the number of agents that have it.
struct Wraps {
    offers: Vec<(Offer, f64)>,
}

impl Builder<'_> {
    /// TLS of a run; none where no agent has a wrap.
    pub(super) fn tls(&mut self, registered: &Registered) -> Option<Tls> {
        let robots = self.offer_of(registered, RecordKind::Robot);
        let proxies = self.offer_of(registered, RecordKind::Proxy);
        let servers = self.offer_of(registered, RecordKind::Server);
        let resumption = robots.as_ref().map(|offer| offer.resumption);
        let verified = robots.as_ref().is_none_or(|offer| offer.verified);
        let has_rsa = [&proxies, &servers].into_iter().flatten().any(|offer| offer.has_rsa);
        let legs = (robots.is_some() || proxies.is_some(), servers.is_some());
        let mut offers = [robots, proxies, servers].into_iter().flatten();
        let first = offers.next()?;
        let common = offers.fold(first, |common, other| self.agreed(common, &other));
        Some(Tls {
            robots: legs.0,
            origins: legs.1,
            oldest: common.oldest,
            newest: common.newest,
            ciphers: if common.ciphers.len() == TlsCipher::ALL.len() { Vec::new() } else { common.ciphers },
            key: if has_rsa { TlsKey::Rsa2048 } else { TlsKey::P256 },
            resumption,
            verified,
        })
    }

    fn agreed(&mut self, common: Offer, other: &Offer) -> Offer {
        let oldest = common.oldest.max(other.oldest);
        let newest = common.newest.min(other.newest);
        let mut ciphers = common.ciphers.clone();
        ciphers.retain(|cipher| other.ciphers.contains(cipher));
        let nothing = match (oldest > newest, ciphers.is_empty()) {
            (true, _) => "version of TLS",
            (_, true) => "cipher",
            _ => return Offer { oldest, newest, ciphers, ..common },
        };
        let message = format!("the `ssl_wraps` of these agents have no {nothing} in common");
        self.diagnostics.add(
            Diagnostic::error(Code::Conflict, other.place, message)
                .label("no connection could be made")
                .also(common.place, "the other agents"),
        );
        common
    }

    fn offer_of(&mut self, registered: &Registered, kind: RecordKind) -> Option<Offer> {
        let mut wraps = Wraps { offers: Vec::new() };
        for (agent, _) in registered.used.iter().filter(|(record, _)| record.kind == kind) {
            let count = self.array(agent, "addresses").map_or(1, |(addresses, _)| addresses.count());
            for choice in self.choices(agent, "ssl_wraps") {
                let Value::Record(wrap) = &choice.value else { continue };
                if choice.probability > 0.0 {
                    let offer = self.wrap(wrap, choice.span);
                    wraps.offers.push((offer, choice.probability * count.max(1) as f64));
                }
            }
        }
        wraps.together()
    }

    /// What one wrap says.
    fn wrap(&mut self, wrap: &Record, place: Span) -> Offer {
        self.note_fields(wrap);
        let (oldest, newest) = self.tls_versions(wrap);
        let keeps_sessions = self.whole(wrap, "session_cache", 0) != Some(0);
        let resumption = self.share(wrap, "session_resumption").unwrap_or(0.0);
        Offer {
            place,
            oldest,
            newest,
            ciphers: self.tls_ciphers(wrap),
            has_rsa: self.has_rsa(wrap),
            verified: self.truth(wrap, "verify_peer_certificate").unwrap_or(true),
            resumption: if keeps_sessions { resumption } else { 0.0 },
        }
    }

    /// The range of versions.
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
        let named = self.words(wrap, "protocols", &known).unwrap_or_default();
        if named.items().iter().any(|((_, is_old), _)| *is_old) {
            let at = self.place(wrap, "protocols");
            self.modern(
                at,
                "versions of TLS before 1.2 must not be used (RFC 8996)",
                "TLS 1.2 is spoken instead",
            );
        }
        let ranges = named.items().iter().map(|((range, _), _)| *range);
        ranges.reduce(|(a, b), (c, d)| (a.min(c), b.max(d))).unwrap_or(ANY)
    }

    /// The ciphers, in the order of preference.
    fn tls_ciphers(&mut self, wrap: &Record) -> Vec<TlsCipher> {
        let mut named: Vec<TlsCipher> = Vec::new();
        for choice in self.members(wrap, "ciphers") {
            let text = choice.value.to_string();
            for word in text.split([':', ',', ' ']).filter(|word| !word.is_empty()) {
                let (ciphers, is_exact) = nearest(word);
                named.extend(ciphers);
                if !is_exact {
                    let instead = match ciphers {
                        [] => "what it takes away or sorts is not looked at",
                        _ => "the nearest cipher that TLS 1.2 and 1.3 still have is used instead",
                    };
                    self.modern(choice.span, &format!("`{word}` is not implemented"), instead);
                }
            }
        }
        if named.is_empty() {
            return TlsCipher::ALL.to_vec();
        }
        TlsCipher::ALL.into_iter().filter(|cipher| named.contains(cipher)).collect()
    }

    /// Whether keys of RSA are wanted.
    fn has_rsa(&mut self, wrap: &Record) -> bool {
        let sizes = self.members(wrap, "rsa_key_sizes");
        // 2,048 bits.
        let other = sizes.iter().find(|choice| !matches!(choice.value, Value::Size(256.0)));
        if let Some(other) = other {
            self.modern(other.span, "keys of RSA have 2,048 bits here", "this size is not used");
        }
        !sizes.is_empty()
    }

    /// Says once that something old means something modern.
    fn modern(&mut self, at: Span, message: &str, label: &str) {
        let diagnostic = Diagnostic::warning(Code::NotActedOn, at, message).label(label);
        self.diagnostics.add_once(format!("tls {message}"), diagnostic);
    }
}

impl Wraps {
    /// What any of them offers.
    fn together(self) -> Option<Offer> {
        let total: f64 = self.offers.iter().map(|(_, weight)| weight).sum();
        let weighted = self.offers.iter().map(|(offer, weight)| offer.resumption * weight);
        let resumption = weighted.sum::<f64>() / total;
        let all = self.offers.into_iter().map(|(offer, _)| offer);
        let all = all.reduce(|mut all, other| {
            (all.oldest, all.newest) = (all.oldest.min(other.oldest), all.newest.max(other.newest));
            all.ciphers.extend(other.ciphers);
            all.has_rsa |= other.has_rsa;
            all.verified &= other.verified;
            all
        })?;
        let ciphers = TlsCipher::ALL.into_iter().filter(|cipher| all.ciphers.contains(cipher)).collect();
        Some(Offer { resumption, ciphers, ..all })
    }
}

/// The ciphers that a word of OpenSSL's cipher strings, or a name of IANA's registry, comes nearest to, and whether it means
/// exactly these.
fn nearest(word: &str) -> (&'static [TlsCipher], bool) {
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
            assert_eq!(nearest(word), (ciphers, is_exact), "{word}");
        }
    }
}
