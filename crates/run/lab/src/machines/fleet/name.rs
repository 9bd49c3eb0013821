//! Names of agents and of runs: what may stand in a subject.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

const MOST_LETTERS: usize = 40;

/// The name of an agent, of a label or of a run: lower-case letters, digits and hyphens. It is one token of a subject.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(String);

/// A text that is no name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "`{0}` is no name: write 1 to {MOST_LETTERS} lower-case letters, digits and hyphens, a letter or digit first"
)]
pub struct NotAName(String);

impl Name {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The nearest name to any text, such as a host's name; none where nothing of it can stand in a name.
    pub fn nearest(text: &str) -> Option<Self> {
        let letters = text.chars().map(|letter| match letter.to_ascii_lowercase() {
            letter if letter.is_ascii_alphanumeric() => letter,
            _ => '-',
        });
        let name: String = letters.collect();
        let name: String = name.trim_matches('-').chars().take(MOST_LETTERS).collect();
        name.parse().ok()
    }
}

impl FromStr for Name {
    type Err = NotAName;

    fn from_str(text: &str) -> Result<Self, NotAName> {
        let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let is_name = text.len() <= MOST_LETTERS
            && text.bytes().next().is_some_and(is_letter)
            && text.bytes().all(|byte| is_letter(byte) || byte == b'-');
        if is_name { Ok(Self(text.to_owned())) } else { Err(NotAName(text.chars().take(100).collect())) }
    }
}

impl TryFrom<String> for Name {
    type Error = NotAName;

    fn try_from(text: String) -> Result<Self, NotAName> {
        text.parse()
    }
}

impl From<Name> for String {
    fn from(name: Name) -> String {
        name.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_token_of_a_subject() {
        for name in ["a", "robots-1", "10-0-0-7"] {
            assert_eq!(name.parse::<Name>().unwrap().as_str(), name);
        }
        for wrong in ["", "-a", "A", "a.b", "a b", "*", ">", "ä", &"a".repeat(41)] {
            assert!(wrong.parse::<Name>().is_err(), "{wrong}");
            assert!(serde_json::from_value::<Name>(wrong.into()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_host_name_becomes_a_name() {
        assert_eq!(Name::nearest("Node_7.Example.ORG").unwrap().as_str(), "node-7-example-org");
        assert_eq!(Name::nearest("..."), None);
        assert_eq!(Name::nearest(&"x".repeat(99)).unwrap().as_str().len(), MOST_LETTERS);
    }
}
