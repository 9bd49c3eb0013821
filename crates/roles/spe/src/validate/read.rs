//! Parses rules files.

use assay_base::settings::{Fields, Mistake, Source, units};

use super::body::{BodyComparison, BodyRule, KEPT_DEFAULT_BYTES};
use super::json::JsonPath;
use super::patterns::TextPattern;
use super::rules::{FieldComparison, Rules};

/// Comparisons of fields, for messages.
const HEADER_COMPARISONS: &str = "`ignore`, `exact`, `if-present`, `date`, `list` or `weak`";
/// Comparisons of bodies, for messages.
const BODY_COMPARISONS: &str = "`bytes`, `ignore`, `json` or `html`";

/// Parses rules; `file` is for messages. They are added to the default ones unless the file says `defaults = false`.
pub fn read(file: &str, text: &str) -> Result<Rules, Mistake> {
    let source = Source { file, text };
    let table = source.parse()?;
    let whole = Fields::whole(source, "a rules file", &table);
    whole.only(&["defaults", "header", "body"])?;
    let with_defaults = whole.get("defaults").map_or(Ok(true), |value| value.flag())?;
    let mut rules = if with_defaults { Rules::with_defaults() } else { Rules::strict() };
    for fields in whole.tables("header", "[[header]]", &["name", "compare", "tolerance", "without"])? {
        header(&fields, &mut rules)?;
    }
    for fields in whole.tables("body", "[[body]]", &["type", "compare", "ignore", "at-most"])? {
        let rule = body(&fields)?;
        rules.bodies.push(rule);
    }
    Ok(rules)
}

fn header(fields: &Fields<'_>, rules: &mut Rules) -> Result<(), Mistake> {
    let name = fields.need("name", "the name of a field; `X-Amz-*` means all that begin so")?;
    let is_name = |text: &str| {
        let begin = text.strip_suffix('*').unwrap_or(text);
        !text.is_empty() && begin.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'+-.^_`|~".contains(&b))
    };
    if !is_name(name.text()?) {
        return Err(name.wrong("this is no name of a header field"));
    }
    let value = fields.need("compare", HEADER_COMPARISONS)?;
    let tolerance = fields.get("tolerance");
    let without = fields.get("without");
    let comparison = match value.text()? {
        "ignore" => FieldComparison::Ignore,
        "exact" => FieldComparison::Exact,
        "if-present" => FieldComparison::IfPresent,
        "weak" => FieldComparison::Weak,
        "date" => {
            let tolerance = tolerance.as_ref().map(|value| value.read(units::duration)).transpose()?;
            FieldComparison::Date { tolerance_s: tolerance.unwrap_or_default().as_secs() }
        }
        "list" => {
            let items = without.as_ref().map(|value| value.list()).transpose()?.unwrap_or_default();
            let text = |item: &assay_base::settings::Value<'_>| Ok(item.text()?.to_ascii_lowercase());
            FieldComparison::List { without: items.iter().map(text).collect::<Result<_, Mistake>>()? }
        }
        other => {
            return Err(value
                .wrong(&format!("`{other}` is no way to compare a field; there is {HEADER_COMPARISONS}")));
        }
    };
    if let Some(value) = tolerance.filter(|_| !matches!(comparison, FieldComparison::Date { .. })) {
        return Err(value.wrong("goes with `compare = \"date\"` only"));
    }
    if let Some(value) = without.filter(|_| !matches!(comparison, FieldComparison::List { .. })) {
        return Err(value.wrong("goes with `compare = \"list\"` only"));
    }
    rules.set(name.text()?, comparison);
    Ok(())
}

fn body(fields: &Fields<'_>) -> Result<BodyRule, Mistake> {
    let media_type = fields.need("type", "a media type, like `application/json`, `text/*` or `*`")?;
    let value = fields.need("compare", BODY_COMPARISONS)?;
    let ignored = fields.get("ignore");
    let items = ignored.as_ref().map(|value| value.list()).transpose()?.unwrap_or_default();
    let comparison = match value.text()? {
        "bytes" => BodyComparison::Bytes,
        "ignore" => BodyComparison::Ignore,
        "json" => BodyComparison::Json(
            items.iter().map(|item| item.read(JsonPath::parse)).collect::<Result<_, Mistake>>()?,
        ),
        "html" => BodyComparison::Text(
            items.iter().map(|item| item.read(TextPattern::parse)).collect::<Result<_, Mistake>>()?,
        ),
        other => {
            return Err(
                value.wrong(&format!("`{other}` is no way to compare bodies; there is {BODY_COMPARISONS}"))
            );
        }
    };
    if let Some(value) =
        ignored.filter(|_| !matches!(comparison, BodyComparison::Json(_) | BodyComparison::Text(_)))
    {
        return Err(value.wrong("goes with `compare = \"json\"` and `compare = \"html\"` only"));
    }
    let max_bytes = fields.get("at-most").map(|value| value.read(units::size)).transpose()?;
    Ok(BodyRule {
        media_type: media_type.text()?.to_ascii_lowercase(),
        comparison,
        max_bytes: max_bytes.map_or(KEPT_DEFAULT_BYTES, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mistake(text: &str) -> String {
        read("my.toml", text).unwrap_err().message
    }

    #[test]
    fn rules_are_added_to_the_usual_ones() {
        let rules = read(
            "my.toml",
            "[[header]]\nname = \"X-Request-Id\"\ncompare = \"ignore\"\n[[header]]\nname = \"Via\"\ncompare = \"exact\"\n\
             [[header]]\nname = \"X-Made\"\ncompare = \"date\"\ntolerance = \"5s\"\n\
             [[header]]\nname = \"X-Tags\"\ncompare = \"list\"\nwithout = [\"Fast\"]\n",
        )
        .unwrap();
        assert!(rules.is_ignored("x-request-id") && rules.is_ignored("Age") && !rules.is_ignored("Via"));
        assert_eq!(*rules.comparison_for(b"x-made"), FieldComparison::Date { tolerance_s: 5 });
        assert_eq!(*rules.comparison_for(b"x-tags"), FieldComparison::List { without: vec!["fast".into()] });
    }

    #[test]
    fn the_usual_rules_can_be_left_out() {
        let rules = read("my.toml", "defaults = false\n").unwrap();
        assert_eq!((rules.is_ignored("Age"), rules), (false, Rules::strict()));
    }

    #[test]
    fn a_mistake_names_its_line_and_what_there_is() {
        let text = "[[header]]\nname = \"Age\"\ncompare = \"never\"\n";
        let said = mistake(text);
        assert!(said.starts_with("my.toml:3: ") && said.contains("if-present"), "{said}");
        assert!(mistake("[[headers]]\nname = \"a\"\n").contains("did you mean `header`?"));
        assert!(
            mistake("[[header]]\nname = \"a b\"\ncompare = \"exact\"\n")
                .contains("no name of a header field")
        );
        let said = mistake("[[header]]\nname = \"a\"\ncompare = \"exact\"\ntolerance = \"1s\"\n");
        assert!(said.contains("my.toml:4: "), "{said}");
        assert!(
            mistake("[[body]]\ntype = \"*\"\ncompare = \"html\"\nignore = [\"*\"]\n")
                .contains("begin and end")
        );
        assert!(mistake("[[body]]\ntype = \"*\"\ncompare = \"bytes\"\nignore = [\"a\"]\n").contains("only"));
        assert!(mistake("[[body]]\ncompare = \"json\"\n").contains("needs `type`"));
    }
}
