//! Settings of a proxy beside memory, disk and processors, and their values.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;

use super::Store;
use assay_base::settings::suggest::or_did_you_mean;

/// Something that can be chosen, with `assay run --set NAME=VALUE` or in an experiment.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Setting {
    /// Effect of the setting, a sentence.
    pub about: String,
    /// The words that may be chosen; empty: it is a number.
    #[serde(default)]
    pub values: Vec<String>,
    /// Unit of the number that may be chosen; none: it is a word.
    #[serde(default, rename = "type")]
    pub kind: Option<SettingUnit>,
    /// The least of that kind.
    #[serde(default)]
    pub least: Option<String>,
    /// The most of that kind.
    #[serde(default)]
    pub most: Option<String>,
    /// Default value.
    pub default: String,
    /// Stores by value, where those differ from the description's.
    #[serde(default)]
    pub stores: BTreeMap<String, Vec<Store>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SettingUnit {
    /// A time in whole seconds: `0`, `90s`, `5m`, `12h`, `1d`.
    Seconds,
    /// A size: `0`, `512KB`, `64MB`, `1GB`.
    Bytes,
    Count,
}

/// A setting that cannot be chosen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    #[error("`{text}` is no value for `{name}` of {title}: it takes {allowed}{near}")]
    Value { text: String, name: String, title: String, allowed: String, near: String },
    #[error("{title} has no setting `{name}`; its description declares none")]
    NoSettings { title: String, name: String },
    #[error("{title} has no setting `{name}`; there are {known}{near}")]
    Unknown { title: String, name: String, known: String, near: String },
}

/// A value that was chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingValue {
    /// One of the words.
    Word(String),
    /// A number: of seconds, of bytes, or of things.
    Number(u64, SettingUnit),
}

impl fmt::Display for SettingValue {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingValue::Word(word) => out.write_str(word),
            SettingValue::Number(number, kind) => out.write_str(&kind.typed(*number)),
        }
    }
}

impl SettingUnit {
    /// Units, largest first.
    fn units(self) -> &'static [(&'static str, u64)] {
        match self {
            SettingUnit::Seconds => &[("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)],
            SettingUnit::Bytes => {
                &[("TB", 1 << 40), ("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10), ("B", 1)]
            }
            SettingUnit::Count => &[("", 1)],
        }
    }

    fn read(self, text: &str) -> Option<u64> {
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let number: u64 = number.parse().ok()?;
        if unit.is_empty() && (number == 0 || self == SettingUnit::Count) {
            return Some(number);
        }
        let factor = self.units().iter().find(|(name, _)| name.eq_ignore_ascii_case(unit.trim()))?.1;
        number.checked_mul(factor)
    }

    /// As it can be typed, exact.
    pub fn typed(self, number: u64) -> String {
        let fits = |factor: u64| factor == 1 || (number != 0 && number.is_multiple_of(factor));
        match self.units().iter().find(|(_, factor)| fits(*factor)) {
            Some((unit, factor)) => format!("{}{unit}", number / factor),
            None => number.to_string(),
        }
    }

    fn examples(self) -> &'static str {
        match self {
            SettingUnit::Seconds => "a time in whole seconds, like 0, 90s, 5m or 1d",
            SettingUnit::Bytes => "a size, like 0, 512KB, 64MB or 1GB",
            SettingUnit::Count => "a whole number",
        }
    }
}

impl Setting {
    /// Values that may be chosen, as text.
    pub fn allowed(&self) -> String {
        let Some(kind) = self.kind else { return format!("one of {}", self.values.join(", ")) };
        let bounds = match (&self.least, &self.most) {
            (Some(least), Some(most)) => format!(", from {least} to {most}"),
            (Some(least), None) => format!(", {least} or more"),
            (None, Some(most)) => format!(", {most} at most"),
            (None, None) => String::new(),
        };
        format!("{}{bounds}", kind.examples())
    }

    /// Reads a value; none when it is not allowed.
    pub(super) fn read(&self, text: &str) -> Option<SettingValue> {
        let Some(kind) = self.kind else {
            return self
                .values
                .iter()
                .any(|value| value == text)
                .then(|| SettingValue::Word(text.to_owned()));
        };
        let number = kind.read(text)?;
        let bound = |text: &Option<String>| text.as_deref().and_then(|text| kind.read(text));
        let least = bound(&self.least).unwrap_or(0);
        let most = bound(&self.most).unwrap_or(u64::MAX);
        (least..=most).contains(&number).then_some(SettingValue::Number(number, kind))
    }

    /// Reads a value of the setting `name` of the proxy `title`; what is allowed, when it is not.
    pub(super) fn choose(&self, title: &str, name: &str, text: &str) -> Result<SettingValue, SettingError> {
        self.read(text).ok_or_else(|| {
            let near = or_did_you_mean(text, self.values.iter().map(String::as_str));
            SettingError::Value {
                text: text.to_owned(),
                name: name.to_owned(),
                title: title.to_owned(),
                allowed: self.allowed(),
                near,
            }
        })
    }

    /// Checks it; the error is the field, and what is wrong with it.
    pub(super) fn check(&self) -> Result<(), (&'static str, String)> {
        if self.about.trim().is_empty() {
            return Err(("about", "must say what it changes".into()));
        }
        match (self.values.is_empty(), self.kind) {
            (true, None) => return Err(("values", "must say either `values` or `type`".into())),
            (false, Some(_)) => return Err(("type", "must say either `values` or `type`, not both".into())),
            _ => {}
        }
        for (key, bound) in [("least", &self.least), ("most", &self.most)] {
            let Some(bound) = bound else { continue };
            let Some(kind) = self.kind else {
                return Err((key, format!("`{key}` goes with `type`, not with `values`")));
            };
            if kind.read(bound).is_none() {
                return Err((key, format!("`{bound}` is not {}", kind.examples())));
            }
        }
        if self.read(&self.default).is_none() {
            return Err(("default", format!("`{}` is not {}", self.default, self.allowed())));
        }
        for (value, stores) in &self.stores {
            if !self.values.contains(value) {
                return Err(("stores", format!("`{value}` is not one of `values`")));
            }
            if stores.is_empty() {
                return Err((
                    "stores",
                    format!("`{value}` must name at least one of \"memory\" and \"disk\""),
                ));
            }
        }
        Ok(())
    }

    /// Values that templates are tried with.
    pub(super) fn samples(&self) -> Vec<String> {
        if self.kind.is_none() {
            return self.values.clone();
        }
        [Some(&self.default), self.least.as_ref(), self.most.as_ref()]
            .into_iter()
            .flatten()
            .cloned()
            .collect()
    }
}

/// Finds the setting `name` of a proxy; the error names those that there are.
pub(super) fn find_setting<'a>(
    settings: &'a BTreeMap<String, Setting>,
    title: &str,
    name: &str,
) -> Result<&'a Setting, SettingError> {
    settings.get(name).ok_or_else(|| {
        if settings.is_empty() {
            return SettingError::NoSettings { title: title.to_owned(), name: name.to_owned() };
        }
        let names: Vec<&str> = settings.keys().map(String::as_str).collect();
        let near = or_did_you_mean(name, names.iter().copied());
        SettingError::Unknown {
            title: title.to_owned(),
            name: name.to_owned(),
            known: names.join(", "),
            near,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(text: &str) -> Setting {
        toml::from_str(&format!("about = \"what\"\n{text}")).unwrap()
    }

    fn wrong(text: &str) -> (&'static str, String) {
        setting(text).check().unwrap_err()
    }

    #[test]
    fn a_word_must_be_one_of_the_values() {
        let policy = setting("values = [\"lru\", \"heap-lfuda\"]\ndefault = \"lru\"");
        assert_eq!(policy.check(), Ok(()));
        assert_eq!(policy.choose("Toy", "policy", "lru"), Ok(SettingValue::Word("lru".into())));
        let error = policy.choose("Toy", "policy", "heap-lfudo").unwrap_err().to_string();
        assert!(error.contains("`policy` of Toy: it takes one of lru, heap-lfuda"), "{error}");
        assert!(error.ends_with("; did you mean `heap-lfuda`?"), "{error}");
    }

    #[test]
    fn numbers_have_units_and_bounds() {
        let ttl = setting("type = \"seconds\"\nmost = \"1d\"\ndefault = \"0\"");
        assert_eq!(ttl.check(), Ok(()));
        for (text, seconds) in [("0", 0), ("90s", 90), ("5m", 300), ("24h", 86_400), ("1d", 86_400)] {
            assert_eq!(ttl.read(text), Some(SettingValue::Number(seconds, SettingUnit::Seconds)), "{text}");
        }
        for text in ["", "90", "2d", "1.5h", "-1s", "1 fortnight", "99999999999999999999d"] {
            assert_eq!(ttl.read(text), None, "{text}");
        }
        assert!(ttl.choose("Toy", "ttl", "2d").unwrap_err().to_string().contains("1d at most"));
        let size = setting("type = \"bytes\"\nleast = \"1KB\"\nmost = \"1GB\"\ndefault = \"64MB\"");
        assert_eq!(size.read("1GB"), Some(SettingValue::Number(1 << 30, SettingUnit::Bytes)));
        assert_eq!(size.read("1kb"), Some(SettingValue::Number(1 << 10, SettingUnit::Bytes)));
        assert_eq!(size.read("1B"), None);
        let count = setting("type = \"count\"\ndefault = \"4\"");
        assert_eq!(count.read("12"), Some(SettingValue::Number(12, SettingUnit::Count)));
    }

    #[test]
    fn what_was_chosen_is_written_as_it_can_be_typed() {
        for (number, kind, typed) in [
            (0, SettingUnit::Seconds, "0s"),
            (90, SettingUnit::Seconds, "90s"),
            (86_400, SettingUnit::Seconds, "1d"),
            (1536, SettingUnit::Bytes, "1536B"),
            (64 << 20, SettingUnit::Bytes, "64MB"),
            (7, SettingUnit::Count, "7"),
        ] {
            assert_eq!(SettingValue::Number(number, kind).to_string(), typed);
            assert_eq!(kind.read(typed), Some(number));
        }
    }

    #[test]
    fn mistakes_are_found_where_they_are() {
        assert_eq!(wrong("default = \"x\"").0, "values");
        assert_eq!(wrong("values = [\"x\"]\ntype = \"count\"\ndefault = \"x\"").0, "type");
        assert_eq!(wrong("values = [\"x\"]\ndefault = \"y\"").0, "default");
        assert_eq!(wrong("type = \"count\"\ndefault = \"many\"").0, "default");
        assert_eq!(wrong("type = \"bytes\"\nleast = \"much\"\ndefault = \"0\"").0, "least");
        assert_eq!(wrong("values = [\"x\"]\nmost = \"y\"\ndefault = \"x\"").0, "most");
        assert_eq!(wrong("values = [\"x\"]\ndefault = \"x\"\nstores = { y = [\"disk\"] }").0, "stores");
        assert_eq!(wrong("values = [\"x\"]\ndefault = \"x\"\nstores = { x = [] }").0, "stores");
    }

    #[test]
    fn an_unknown_name_is_told_what_there_is() {
        let one = setting("values = [\"x\"]\ndefault = \"x\"");
        let all = BTreeMap::from([("replacement".to_owned(), one.clone()), ("ttl".to_owned(), one)]);
        let error = find_setting(&all, "Toy", "replacment").unwrap_err().to_string();
        assert_eq!(
            error,
            "Toy has no setting `replacment`; there are replacement, ttl; did you mean `replacement`?"
        );
        assert!(
            find_setting(&BTreeMap::new(), "Toy", "x").unwrap_err().to_string().contains("declares none")
        );
        assert!(find_setting(&all, "Toy", "ttl").is_ok());
    }

    proptest::proptest! {
        #[test]
        fn whatever_is_typed_is_a_value_or_refused(text in "\\PC{0,12}") {
            for kind in [SettingUnit::Seconds, SettingUnit::Bytes, SettingUnit::Count] {
                if let Some(number) = kind.read(&text) {
                    proptest::prop_assert_eq!(kind.read(&kind.typed(number)), Some(number));
                }
            }
        }
    }
}
