//! Who sends requests, by what a `User-Agent` says: a bot, a tool, a browser. The rules are data (`rules.txt`), with their
//! sources; what fits none of them is unknown. Nothing is verified: a request can carry any `User-Agent`.

use std::sync::LazyLock;

use memchr::memmem::Finder;

/// What kind of sender it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Kind {
    Browser,
    /// A program that fetches pages by itself.
    Bot,
    /// A program or library that people use to send requests.
    Tool,
    Unknown,
    /// The request has no `User-Agent`.
    None,
}

pub const KINDS: usize = 5;

impl Kind {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Kind; KINDS] = [Kind::Browser, Kind::Bot, Kind::Tool, Kind::Unknown, Kind::None];

    pub fn name(self) -> &'static str {
        match self {
            Kind::Browser => "browser",
            Kind::Bot => "bot",
            Kind::Tool => "tool",
            Kind::Unknown => "unknown",
            Kind::None => "none",
        }
    }
}

/// A name that rules give, with its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Family {
    pub kind: Kind,
    /// The name, such as `Googlebot`.
    pub name: &'static str,
}

/// Place of [`Kind::Unknown`] among the families.
pub const UNKNOWN: usize = 0;
/// Place of [`Kind::None`] among the families.
pub const NONE: usize = 1;

/// Bytes of a `User-Agent` that are looked at.
const LOOKED_AT: usize = 512;

/// The rules, compiled.
struct Rules {
    families: Vec<Family>,
    /// A text in lower case, and the place of its family.
    texts: Vec<(Finder<'static>, usize)>,
}

static RULES: LazyLock<Rules> = LazyLock::new(|| read(include_str!("rules.txt")));

/// Reads rules; lines that are none are left out, which a test rules out for ours.
fn read(text: &'static str) -> Rules {
    let mut rules = Rules {
        families: vec![
            Family { kind: Kind::Unknown, name: "unknown" },
            Family { kind: Kind::None, name: "(none)" },
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
    let kind = [Kind::Browser, Kind::Bot, Kind::Tool].into_iter().find(|known| known.name() == kind)?;
    Some((Family { kind, name: parts.next()? }, parts.next()?))
}

/// All families: those of the rules, and [`UNKNOWN`] and [`NONE`].
pub fn families() -> &'static [Family] {
    &RULES.families
}

/// How many rules there are.
pub fn rules() -> usize {
    RULES.texts.len()
}

/// The place, among the [`families`], of the one that sends this `User-Agent`.
pub fn family(agent: &[u8]) -> usize {
    if agent.is_empty() {
        return NONE;
    }
    let mut lower = [0; LOOKED_AT];
    let length = agent.len().min(LOOKED_AT);
    lower[..length].copy_from_slice(&agent[..length]);
    lower.make_ascii_lowercase();
    let fits = |(text, _): &&(Finder<'static>, usize)| text.find(&lower[..length]).is_some();
    RULES.texts.iter().find(fits).map_or(UNKNOWN, |(_, family)| *family)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn named(agent: &str) -> (Kind, &'static str) {
        let family = families()[family(agent.as_bytes())];
        (family.kind, family.name)
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
        assert_eq!((count, families().len() < count), (rules(), true));
    }

    #[test]
    fn what_programs_send_is_known_by_kind_and_name() {
        let chrome = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36";
        for (agent, expected) in [
            (chrome, (Kind::Browser, "Chrome")),
            (&format!("{chrome} Edg/130.0.0.0"), (Kind::Browser, "Edge")),
            (&format!("{chrome} OPR/114.0.0.0"), (Kind::Browser, "Opera")),
            (&chrome.replace("Chrome/", "HeadlessChrome/"), (Kind::Tool, "headless Chrome")),
            (
                "Mozilla/5.0 (X11; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0",
                (Kind::Browser, "Firefox"),
            ),
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1",
                (Kind::Browser, "Safari"),
            ),
            (
                "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; Googlebot/2.1; +http://www.google.com/bot.html) Chrome/130.0.0.0 Safari/537.36",
                (Kind::Bot, "Google"),
            ),
            ("Mozilla/5.0+(compatible;+bingbot/2.0;++http://www.bing.com/bingbot.htm)", (Kind::Bot, "Bing")),
            ("SomeNewBot/1.0", (Kind::Bot, "other bots")),
            ("Fetcher (+https://example.com/about)", (Kind::Bot, "other bots")),
            ("curl/8.11.0", (Kind::Tool, "curl")),
            ("Go-http-client/1.1", (Kind::Tool, "Go")),
            ("Varnish-probe 7", (Kind::Unknown, "unknown")),
            ("", (Kind::None, "(none)")),
        ] {
            assert_eq!(named(agent), expected, "{agent}");
        }
        // A telephone, whose maker's name ends like a bot.
        let phone = "Mozilla/5.0 (Linux; Android 9; CUBOT X19) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0 Mobile Safari/537.36";
        assert_eq!(named(phone), (Kind::Browser, "Chrome"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_of_some_family(agent in proptest::collection::vec(any::<u8>(), 0..700)) {
            prop_assert!(family(&agent) < families().len());
        }
    }
}
