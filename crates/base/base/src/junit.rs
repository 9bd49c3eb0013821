//! Results as JUnit's XML, which GitHub, GitLab, Jenkins and others show beside a pull request. Pure.
//!
//! The format has no standard; this is the part of it that all readers know: suites of cases, each of which passed, failed, had
//! an error or was skipped, with a message (<https://github.com/testmoapp/junitxml>).
//!
//! *Does not:* know what a run or a comparison is, or write to a file.

use std::fmt::Write as _;

/// Result of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Passed,
    /// The case failed, for this reason.
    Failed(String),
    /// The case could not be run, for this reason.
    Error(String),
    /// The case was not decided, for this reason.
    Skipped(String),
}

/// A test case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// Class of the case, by which readers group.
    pub class: String,
    pub name: String,
    pub outcome: Outcome,
}

/// A group of cases.
#[derive(Debug, Clone, PartialEq)]
pub struct Suite {
    pub name: String,
    /// Start, as ISO 8601 in UTC without a zone; none: not known.
    pub timestamp: Option<String>,
    /// Duration in seconds; none: not known.
    pub time_s: Option<f64>,
    /// The cases, in the order in which they are shown.
    pub cases: Vec<Case>,
}

/// The document; `name` is that of the tool.
pub fn document(name: &str, suites: &[Suite]) -> String {
    let mut xml =
        format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"{}\">\n", escaped(name));
    for suite in suites {
        write_suite(&mut xml, suite);
    }
    xml + "</testsuites>\n"
}

fn write_suite(xml: &mut String, suite: &Suite) {
    let count = |is_counted: fn(&Outcome) -> bool| {
        suite.cases.iter().filter(|case| is_counted(&case.outcome)).count()
    };
    let time = suite.time_s.map(|time| format!(" time=\"{time:.3}\"")).unwrap_or_default();
    let timestamp =
        suite.timestamp.as_ref().map(|at| format!(" timestamp=\"{}\"", escaped(at))).unwrap_or_default();
    // Writing to a string cannot fail.
    let _ = writeln!(
        xml,
        "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\"{time}{timestamp}>",
        escaped(&suite.name),
        suite.cases.len(),
        count(|outcome| matches!(outcome, Outcome::Failed(_))),
        count(|outcome| matches!(outcome, Outcome::Error(_))),
        count(|outcome| matches!(outcome, Outcome::Skipped(_))),
    );
    for case in &suite.cases {
        let _ = write!(
            xml,
            "    <testcase classname=\"{}\" name=\"{}\"",
            escaped(&case.class),
            escaped(&case.name)
        );
        let (element, why) = match &case.outcome {
            Outcome::Passed => {
                xml.push_str("/>\n");
                continue;
            }
            Outcome::Failed(why) => ("failure", why),
            Outcome::Error(why) => ("error", why),
            Outcome::Skipped(why) => ("skipped", why),
        };
        let _ = writeln!(xml, ">\n      <{element} message=\"{}\"/>\n    </testcase>", escaped(why));
    }
    xml.push_str("  </testsuite>\n");
}

/// Text in an attribute. Characters that XML 1.0 has no way to write (section 2.2) become U+FFFD.
fn escaped(text: &str) -> String {
    let mut xml = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => xml.push_str("&amp;"),
            '<' => xml.push_str("&lt;"),
            '>' => xml.push_str("&gt;"),
            '"' => xml.push_str("&quot;"),
            // Plain ones would be read as spaces.
            '\n' => xml.push_str("&#10;"),
            '\t' => xml.push_str("&#9;"),
            '\r' => xml.push_str("&#13;"),
            '\u{fffe}' | '\u{ffff}' => xml.push('\u{fffd}'),
            control if control < ' ' => xml.push('\u{fffd}'),
            other => xml.push(other),
        }
    }
    xml
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn case(name: &str, outcome: Outcome) -> Case {
        Case { class: "demo".into(), name: name.into(), outcome }
    }

    #[test]
    fn a_suite_counts_what_came_of_its_cases() {
        let suite = Suite {
            name: "demo through \"builtin\"".into(),
            timestamp: Some("2026-01-02T03:04:05".into()),
            time_s: Some(25.0),
            cases: vec![
                case("dhr > 0.5", Outcome::Passed),
                case("p99 < 5ms", Outcome::Failed("7 ms".into())),
                case("errors == 0", Outcome::Skipped("not known".into())),
                case("cell", Outcome::Error("it did not start".into())),
            ],
        };
        assert_eq!(
            document("assay run", &[suite]),
            "\
<?xml version=\"1.0\" encoding=\"UTF-8\"?>
<testsuites name=\"assay run\">
  <testsuite name=\"demo through &quot;builtin&quot;\" tests=\"4\" failures=\"1\" errors=\"1\" skipped=\"1\" time=\"25.000\" timestamp=\"2026-01-02T03:04:05\">
    <testcase classname=\"demo\" name=\"dhr &gt; 0.5\"/>
    <testcase classname=\"demo\" name=\"p99 &lt; 5ms\">
      <failure message=\"7 ms\"/>
    </testcase>
    <testcase classname=\"demo\" name=\"errors == 0\">
      <skipped message=\"not known\"/>
    </testcase>
    <testcase classname=\"demo\" name=\"cell\">
      <error message=\"it did not start\"/>
    </testcase>
  </testsuite>
</testsuites>
"
        );
    }

    proptest! {
        #[test]
        fn no_text_breaks_out_of_its_attribute(text in "\\PC{0,20}|[\\x00-\\x7f]{0,20}") {
            let written = escaped(&text);
            let is_safe = |c: char| !matches!(c, '<' | '>' | '"') && c >= ' ';
            prop_assert!(written.chars().all(is_safe), "{written:?}");
            let entities = ["&amp;", "&lt;", "&gt;", "&quot;", "&#10;", "&#9;", "&#13;"];
            let after = written.match_indices('&').map(|(at, _)| &written[at..]);
            for rest in after {
                prop_assert!(entities.iter().any(|entity| rest.starts_with(entity)), "{rest:?}");
            }
        }
    }
}
