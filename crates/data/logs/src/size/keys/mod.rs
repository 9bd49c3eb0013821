//! Rules about the requests of a log that the log does not state: which requests are for one object ([`rules`]; by the
//! [`fields`] and cookies in their lines, and the `Vary` of their responses, [`logged_fields`]), what is never stored, how long
//! a response is fresh; and the reverse question, which parameters, fields and cookies split objects ([`suggest`]).

pub mod fields;
pub mod logged_fields;
pub mod pattern;
pub mod rules;
pub mod suggest;

use crate::access::Access;
use crate::format::{canonical_field_name, logging_hint};

use self::fields::{COOKIE, RequestFields};
use self::logged_fields::LoggedFields;
use self::pattern::{Pattern, RuleSubject};
use self::rules::{KeyRules, NameRule, matches_one, name, parameters};
use self::suggest::KeySuggester;

/// A rule, and how many requests it was for.
#[derive(Debug, Clone)]
pub struct LogRule<T> {
    /// As it was written.
    pub text: String,
    /// Requests that the rule matches.
    pub pattern: Pattern,
    pub says: T,
    /// Number of requests that it matched.
    pub matched: u64,
}

/// All that is said of a log.
#[derive(Debug, Default)]
pub struct LogRules {
    /// Hosts whose requests are taken; empty: all.
    pub hosts: Vec<Pattern>,
    /// Freshness lifetimes in seconds: the first rule that matches decides; without one, responses never expire.
    pub ttl: Vec<LogRule<u32>>,
    /// Requests that are never stored.
    pub uncachable: Vec<LogRule<()>>,
    pub key: KeyRules,
    /// Looks for parameters that split objects; none: nobody asked.
    pub suggest: Option<KeySuggester>,
    /// Requests that were left out for their host.
    pub left_out: u64,
    /// Names in rules of the key that no request had until now.
    idle: Vec<(NameRule, String)>,
}

impl LogRules {
    /// Nothing but a key; `suggests`: changes of it are looked for.
    pub fn of_key(key: KeyRules, suggests: bool) -> Self {
        let of = |rule| key.names(rule).iter().map(move |name| (rule, name.clone()));
        let idle = NameRule::ALL.into_iter().flat_map(of).collect();
        Self { suggest: suggests.then(|| KeySuggester::new(key.clone())), key, idle, ..Self::default() }
    }

    /// Lines have to be read for fields and cookies.
    pub(crate) fn read_fields(&self) -> bool {
        self.key.reads_fields() || self.suggest.is_some()
    }

    /// Strikes the names of the key's rules that a request has.
    pub(crate) fn strike_matched(&mut self, query: &[u8], fields: &RequestFields<'_>) {
        if self.idle.is_empty() {
            return;
        }
        self.idle.retain(|(rule, form)| {
            let forms = std::slice::from_ref(form);
            !match rule {
                NameRule::Drop => parameters(query).any(|one| matches_one(forms, name(one))),
                NameRule::Vary | NameRule::IgnoreField => {
                    fields.fields.iter().any(|(name, _)| matches_one(forms, name.as_bytes()))
                }
                NameRule::Cookie | NameRule::IgnoreCookie => {
                    fields.cookies.iter().any(|(name, _)| matches_one(forms, name))
                }
            }
        });
    }

    /// A sentence for each name in a rule of the key that no request had, and what a log cannot tell.
    pub(crate) fn notes_of_key(&self, logged: &LoggedFields) -> Vec<String> {
        let unlogged = |field: &str, what: &str| {
            format!(
                "the log does not have {what}, so the rule splits nothing. Log it: {}.",
                logging_hint(field)
            )
        };
        let note = |(rule, name): &(NameRule, String)| {
            let why = match rule {
                NameRule::Vary if !logged.has_field(name) => unlogged(name, &canonical_field_name(name)),
                NameRule::Cookie if !logged.has_cookie(name) => unlogged(COOKIE, "this cookie"),
                _ => "it matches no request.".into(),
            };
            format!("The rule --key '{} {name}': {why}", rule.verb())
        };
        let mut notes: Vec<String> = self.idle.iter().map(note).collect();
        if self.suggest.is_some() && !logged.tells_fields() {
            notes.push(format!(
                "The log has neither cookies nor other fields of requests that responses may depend on: whether these split objects is \
                 not known. Log them, as Cookie: {}.",
                logging_hint(COOKIE)
            ));
        }
        notes
    }

    /// True if nothing is said, so that any input will do.
    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty()
            && self.ttl.is_empty()
            && self.uncachable.is_empty()
            && self.key == KeyRules::default()
            && self.suggest.is_none()
    }

    /// A sentence for each rule that was for no request, and what was left out; `are_lives_told`: some responses say themselves how long
    /// they are fresh.
    pub fn notes(&self, are_lives_told: bool) -> Vec<String> {
        let ttl = self.ttl.iter().map(|rule| (&rule.text, rule.matched, "--ttl"));
        let uncachable = self.uncachable.iter().map(|rule| (&rule.text, rule.matched, "--uncachable"));
        let idle = ttl.chain(uncachable).filter(|(_, matched, _)| *matched == 0);
        let mut notes: Vec<String> =
            idle.map(|(text, _, flag)| format!("The rule {flag} '{text}' matches no request.")).collect();
        if self.left_out > 0 {
            let count = assay_base::settings::show::count(self.left_out);
            notes.push(format!("{count} requests for other hosts were left out."));
        }
        if !self.ttl.is_empty() || are_lives_told {
            notes.push(
                "A copy that has expired is taken to be confirmed by its origin if the object still has the same size.".into(),
            );
        }
        notes
    }
}

/// The first rule that is for a request, which is counted.
pub(crate) fn first<'a, T>(rules: &'a mut [LogRule<T>], shown: &RuleSubject<'_>) -> Option<&'a T> {
    let rule = rules.iter_mut().find(|rule| rule.pattern.matches(shown))?;
    rule.matched += 1;
    Some(&rule.says)
}

/// Host, path and query of a request, wherever the log has them.
pub(crate) fn parts<'a>(access: &Access<'a>) -> (&'a [u8], &'a [u8], &'a [u8]) {
    let url = access.url;
    let after_scheme = url.windows(3).position(|three| three == b"://").map(|at| at + 3);
    let target = match after_scheme.filter(|_| url.first() != Some(&b'/')) {
        Some(at) => {
            url[at..].iter().position(|byte| *byte == b'/').map_or(&b"/"[..], |path| &url[at + path..])
        }
        None => url,
    };
    let (path, own) = match target.iter().position(|byte| *byte == b'?') {
        Some(at) => (&target[..at], &target[at + 1..]),
        None => (target, &b""[..]),
    };
    let query = if access.query.is_empty() { own } else { access.query };
    (access.host(), path, query.strip_prefix(b"?").unwrap_or(query))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_path_and_query_are_found_wherever_the_log_has_them() {
        let of = |url: &'static str, host: &'static str, query: &'static str| {
            let access = Access {
                url: url.as_bytes(),
                host: host.as_bytes(),
                query: query.as_bytes(),
                ..Access::default()
            };
            let (host, path, query) = parts(&access);
            [host, path, query].map(|part| String::from_utf8_lossy(part).into_owned())
        };
        assert_eq!(of("/a?x=1", "h", ""), ["h", "/a", "x=1"]);
        assert_eq!(of("/a", "h", "?x=1"), ["h", "/a", "x=1"]);
        assert_eq!(of("http://h/a/b?y", "", ""), ["h", "/a/b", "y"]);
        assert_eq!(of("http://h", "", ""), ["h", "/", ""]);
        assert_eq!(of("/go?to=http://x/", "h", ""), ["h", "/go", "to=http://x/"]);
    }
}
