//! Fields of a settings file, with errors that name their line.

use std::fmt::Display;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::settings::suggest::nearest;

/// A file that cannot be read: which file and line, what was read and what was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Mistake {
    pub message: String,
}

/// A file and its text.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// Name of the file, for messages.
    pub file: &'a str,
    pub text: &'a str,
}

impl<'a> Source<'a> {
    /// The file as a table.
    pub fn parse(&self) -> Result<Spanned<DeTable<'a>>, Mistake> {
        DeTable::parse(self.text)
            .map_err(|error| self.wrong(error.span().unwrap_or(0..0), error.message().trim_end()))
    }

    /// A mistake, with its line.
    pub fn wrong(&self, span: Range<usize>, what: &str) -> Mistake {
        let before = self.text.get(..span.start.min(self.text.len())).unwrap_or(self.text);
        let number = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        let line = self.text.lines().nth(number - 1).unwrap_or_default().trim_end();
        let message = format!("{}:{number}: {what}\n{number:>5} | {line}", self.file);
        Mistake { message }
    }
}

/// A table of the file.
#[derive(Debug, Clone)]
pub struct Fields<'a> {
    source: Source<'a>,
    /// Name in messages: `[[proxy]]`, say.
    what: &'static str,
    span: Range<usize>,
    table: &'a DeTable<'a>,
}

impl<'a> Fields<'a> {
    /// The whole file, which is `what`: `an experiment`, say.
    pub fn whole(source: Source<'a>, what: &'static str, table: &'a Spanned<DeTable<'a>>) -> Self {
        Self { source, what, span: 0..0, table: table.get_ref() }
    }

    /// The tables of a list like `[[proxy]]`, of which each is `what`; none when there are none.
    pub fn tables(&self, key: &str, what: &'static str, known: &[&str]) -> Result<Vec<Fields<'a>>, Mistake> {
        let Some(list) = self.get(key) else { return Ok(Vec::new()) };
        let read = |value: Value<'a>| {
            let fields = value.fields(what)?;
            fields.only(known)?;
            Ok(fields)
        };
        list.list()?.into_iter().map(read).collect()
    }

    /// A mistake of the table as a whole.
    pub fn wrong(&self, what: &str) -> Mistake {
        self.source.wrong(self.span.clone(), what)
    }

    /// The line that it begins in.
    pub fn line(&self) -> usize {
        let before = self.source.text.get(..self.span.start).unwrap_or_default();
        before.bytes().filter(|byte| *byte == b'\n').count() + 1
    }

    /// Refuses every field that is not `known`.
    pub fn only(&self, known: &[&str]) -> Result<(), Mistake> {
        for (key, _) in self.table {
            let name = key.get_ref().as_ref();
            if !known.contains(&name) {
                let meant = nearest(name, known.iter().copied()).map_or_else(
                    || format!("{} can have: {}", self.what, known.join(", ")),
                    |near| format!("did you mean `{near}`?"),
                );
                return Err(self.source.wrong(key.span(), &format!("unknown field `{name}`; {meant}")));
            }
        }
        Ok(())
    }

    /// A field, if it is there.
    pub fn get(&self, key: &str) -> Option<Value<'a>> {
        let value = self.table.get(key)?;
        Some(Value { source: self.source, key: key.to_owned(), value })
    }

    /// A field that must be there.
    pub fn need(&self, key: &str, expected: &str) -> Result<Value<'a>, Mistake> {
        let missing = || format!("{} needs `{key}`: {expected}", self.what);
        self.get(key).ok_or_else(|| self.wrong(&missing()))
    }

    /// All fields, in the order of the file.
    pub fn all(&self) -> Vec<Value<'a>> {
        let mut all: Vec<Value<'a>> = self
            .table
            .iter()
            .map(|(key, value)| Value { source: self.source, key: key.get_ref().to_string(), value })
            .collect();
        all.sort_by_key(|value| value.value.span().start);
        all
    }
}

/// A value of the file, with the name of its field.
#[derive(Debug, Clone)]
pub struct Value<'a> {
    source: Source<'a>,
    pub key: String,
    value: &'a Spanned<DeValue<'a>>,
}

impl<'a> Value<'a> {
    pub fn wrong(&self, what: &str) -> Mistake {
        self.source.wrong(self.value.span(), &format!("{}: {what}", self.key))
    }

    fn unexpected(&self, expected: &str) -> Mistake {
        self.wrong(&format!("{} is not {expected}", self.excerpt()))
    }

    /// The value as written, cut to something that fits a line.
    fn excerpt(&self) -> String {
        let text = self.source.text.get(self.value.span()).unwrap_or_default();
        let text = text.lines().next().unwrap_or_default();
        let short: String = text.chars().take(40).collect();
        format!("`{short}`")
    }

    pub fn text(&self) -> Result<&'a str, Mistake> {
        self.as_text().ok_or_else(|| self.unexpected("text (in quotes)"))
    }

    /// The value, if it is text.
    pub fn as_text(&self) -> Option<&'a str> {
        self.value.get_ref().as_str()
    }

    /// A text that is read by `read`; its complaint is passed on.
    pub fn read<T, E: Display>(&self, read: impl Fn(&str) -> Result<T, E>) -> Result<T, Mistake> {
        let digits = match self.value.get_ref() {
            DeValue::Integer(digits) => digits.as_str(),
            DeValue::Float(digits) => digits.as_str(),
            _ => return read(self.text()?).map_err(|why| self.wrong(&why.to_string())),
        };
        // A number where a text belongs most often lacks its unit: that is worth more than a word on quotes alone.
        match read(digits) {
            Ok(_) => Err(self.wrong(&format!("write it in quotes: \"{digits}\""))),
            Err(why) => Err(self.wrong(&format!("{why}, in quotes"))),
        }
    }

    /// A whole number from `least` to `most`.
    pub fn whole(&self, least: u64, most: u64) -> Result<u64, Mistake> {
        let number = match self.value.get_ref() {
            DeValue::Integer(digits) => u64::from_str_radix(digits.as_str(), digits.radix()).ok(),
            _ => None,
        };
        let expected = || self.unexpected(&format!("an integer from {least} to {most}"));
        number.filter(|number| (least..=most).contains(number)).ok_or_else(expected)
    }

    /// A number above `above`, and at most `most`.
    pub fn number(&self, above: f64, most: f64) -> Result<f64, Mistake> {
        let number = match self.value.get_ref() {
            DeValue::Integer(digits) if digits.radix() == 10 => digits.as_str().parse::<f64>().ok(),
            DeValue::Float(digits) => digits.as_str().parse::<f64>().ok(),
            _ => None,
        };
        let expected = || self.unexpected(&format!("a number above {above} and up to {most}"));
        number.filter(|number| *number > above && *number <= most).ok_or_else(expected)
    }

    pub fn flag(&self) -> Result<bool, Mistake> {
        self.value.get_ref().as_bool().ok_or_else(|| self.unexpected("`true` or `false`"))
    }

    /// Anything that is one value, as it would be typed.
    pub fn plain(&self) -> Result<String, Mistake> {
        match self.value.get_ref() {
            DeValue::String(text) => Ok(text.to_string()),
            DeValue::Boolean(flag) => Ok(flag.to_string()),
            DeValue::Integer(digits) if digits.radix() == 10 => Ok(digits.as_str().to_owned()),
            DeValue::Float(digits) => Ok(digits.as_str().to_owned()),
            _ => Err(self.unexpected("a single value: text, a number, true or false")),
        }
    }

    /// The items of a list; a single value is a list of one.
    pub fn list(&self) -> Result<Vec<Value<'a>>, Mistake> {
        let Some(items) = self.value.get_ref().as_array() else { return Ok(vec![self.clone()]) };
        let item = |value| Value { source: self.source, key: self.key.clone(), value };
        let items: Vec<Value<'a>> = items.iter().map(item).collect();
        if items.is_empty() { Err(self.wrong("the list is empty; leave it out")) } else { Ok(items) }
    }

    pub fn fields(&self, what: &'static str) -> Result<Fields<'a>, Mistake> {
        let span = self.value.span();
        match self.value.get_ref().as_table() {
            Some(table) => Ok(Fields { source: self.source, what, span, table }),
            None => Err(self.unexpected("a table")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_is_shown_with_its_line() {
        let source = Source { file: "x.toml", text: "a = 1\nb = 2 # two\n" };
        assert_eq!(source.wrong(10..11, "b: odd").message, "x.toml:2: b: odd\n    2 | b = 2 # two");
        assert!(source.wrong(999..1000, "late").message.starts_with("x.toml:3: late"));
    }
}
