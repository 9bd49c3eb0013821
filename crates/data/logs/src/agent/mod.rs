//! Who sends requests, by what a `User-Agent` says: a bot, a tool, a browser. The rules are data (`rule_count.txt`), with their
//! sources; what fits none of them is unknown. Nothing is verified: a request can carry any `User-Agent`.

use std::sync::LazyLock;

use memchr::memmem::Finder;
use strum::{IntoStaticStr, VariantArray};

/// Kind of sender, by its `User-Agent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
#[repr(u8)]
pub enum AgentKind {
    Browser,
    /// A program that fetches pages by itself.
    Bot,
    /// A program or library that people use to send requests.
    Tool,
    Unknown,
    /// The request has no `User-Agent`.
    None,
}

impl AgentKind {
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// A name that rules give, with its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Family {
    pub kind: AgentKind,
    /// The name, such as `Googlebot`.
    pub name: &'static str,
}

/// Place of [`AgentKind::Unknown`] among the families.
pub const UNKNOWN_AGENT: usize = 0;
/// Place of [`AgentKind::None`] among the families.
pub const NO_AGENT: usize = 1;

/// Bytes of a `User-Agent` that are looked at.
const MAX_AGENT_BYTES: usize = 512;

struct AgentRules {
    families: Vec<Family>,
    /// A text in lower case, and the place of its family.
    texts: Vec<(Finder<'static>, usize)>,
}

static RULES: LazyLock<AgentRules> = LazyLock::new(|| read(include_str!("rules.txt")));

/// Reads rules; lines that are none are left out, which a test rules out for ours.
fn read(text: &'static str) -> AgentRules {
    let mut rules = AgentRules {
        families: vec![
            Family { kind: AgentKind::Unknown, name: "unknown" },
            Family { kind: AgentKind::None, name: "(none)" },
        ],
        texts: Vec::new(),
    };
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let Some((family, text)) = rule(line) else { continue };
        let at = rules.families.iter().position(|known| *known == family).unwrap_or_else(|| {
            rules.families.push(family);
            rules.families.len() - 1
        });
        rules.texts.push((Finder::new(text), at));
    }
    rules
}

/// `kind | name | text`.
fn rule(line: &'static str) -> Option<(Family, &'static str)> {
    let mut parts = line.splitn(3, " | ");
    let kind = parts.next()?;
    let kind = [AgentKind::Browser, AgentKind::Bot, AgentKind::Tool]
        .into_iter()
        .find(|known| known.name() == kind)?;
    Some((Family { kind, name: parts.next()? }, parts.next()?))
}

/// All families: those of the rules, and [`UNKNOWN_AGENT`] and [`NO_AGENT`].
pub fn families() -> &'static [Family] {
    &RULES.families
}

pub fn rule_count() -> usize {
    RULES.texts.len()
}

/// The place, among the [`families`], of the one that sends this `User-Agent`.
pub fn family_index(agent: &[u8]) -> usize {
    if agent.is_empty() {
        return NO_AGENT;
    }
    let mut lower = [0; MAX_AGENT_BYTES];
    let length = agent.len().min(MAX_AGENT_BYTES);
    lower[..length].copy_from_slice(&agent[..length]);
    lower.make_ascii_lowercase();
    let fits = |(text, _): &&(Finder<'static>, usize)| text.find(&lower[..length]).is_some();
    RULES.texts.iter().find(fits).map_or(UNKNOWN_AGENT, |(_, family_index)| *family_index)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn named(agent: &str) -> (AgentKind, &'static str) {
        let family_index = families()[family_index(agent.as_bytes())];
        (family_index.kind, family_index.name)
    }

    #[test]
    fn every_line_of_the_rules_is_one_and_can_be_reached() {
        let lines =
            include_str!("rules.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let mut count = 0;
        for line in lines {
            let (expected, text) = rule(line).expect(line);
            assert_eq!(text, text.to_ascii_lowercase(), "{line}");
            assert_eq!(named(text), (expected.kind, expected.name), "an earlier rule takes `{line}`");
            count += 1;
        }
        assert_eq!((count, families().len() < count), (rule_count(), true));
    }

    #[test]
    fn what_programs_send_is_known_by_kind_and_name() {
        let chrome = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36";
        for (agent, expected) in [
            (chrome, (AgentKind::Browser, "Chrome")),
            (&format!("{chrome} Edg/130.0.0.0"), (AgentKind::Browser, "Edge")),
            (&format!("{chrome} OPR/114.0.0.0"), (AgentKind::Browser, "Opera")),
            (&chrome.replace("Chrome/", "HeadlessChrome/"), (AgentKind::Tool, "headless Chrome")),
            (
                "Mozilla/5.0 (X11; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0",
                (AgentKind::Browser, "Firefox"),
            ),
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1",
                (AgentKind::Browser, "Safari"),
            ),
            (
                "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; Googlebot/2.1; +http://www.google.com/bot.html) Chrome/130.0.0.0 Safari/537.36",
                (AgentKind::Bot, "Google"),
            ),
            (
                "Mozilla/5.0+(compatible;+bingbot/2.0;++http://www.bing.com/bingbot.htm)",
                (AgentKind::Bot, "Bing"),
            ),
            ("SomeNewBot/1.0", (AgentKind::Bot, "other bots")),
            ("Fetcher (+https://example.com/about)", (AgentKind::Bot, "other bots")),
            ("curl/8.11.0", (AgentKind::Tool, "curl")),
            ("Go-http-client/1.1", (AgentKind::Tool, "Go")),
            ("Varnish-probe 7", (AgentKind::Unknown, "unknown")),
            ("", (AgentKind::None, "(none)")),
        ] {
            assert_eq!(named(agent), expected, "{agent}");
        }
        // A telephone, whose maker's name ends like a bot.
        let phone = "Mozilla/5.0 (Linux; Android 9; CUBOT X19) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0 Mobile Safari/537.36";
        assert_eq!(named(phone), (AgentKind::Browser, "Chrome"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_of_some_family(agent in proptest::collection::vec(any::<u8>(), 0..700)) {
            prop_assert!(family_index(&agent) < families().len());
        }
    }
}
