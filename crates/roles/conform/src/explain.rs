//! What a step expects, in words.

use crate::case::{Expect, ExpectedSource, FieldCondition, FieldTest};

/// A line for each expectation.
pub fn expectations(expect: &Expect) -> Vec<String> {
    let mut lines = Vec::new();
    let mut say = |line: String| lines.push(line);
    if let Some(served) = expect.served {
        say(match served {
            ExpectedSource::Store => {
                "the response comes from the store: nothing reaches the origin before it"
            }
            ExpectedSource::Origin => "the request reaches the origin",
            ExpectedSource::Validated => "a conditional request reaches the origin",
            ExpectedSource::Fetched => "a request without a condition reaches the origin",
        }
        .to_owned());
    }
    let list = |all: &[usize]| all.iter().map(usize::to_string).collect::<Vec<_>>().join(" or ");
    let statuses = |all: &[u16]| all.iter().map(u16::to_string).collect::<Vec<_>>().join(" or ");
    if !expect.from.is_empty() {
        say(format!("the response is the one of step {}", list(&expect.from)));
    }
    if !expect.not_from.is_empty() {
        say(format!("the response is not the one of step {}", list(&expect.not_from)));
    }
    if !expect.status.is_empty() {
        say(format!("status {}", statuses(&expect.status)));
    }
    if !expect.not_status.is_empty() {
        say(format!("not status {}", statuses(&expect.not_status)));
    }
    expect.fields.iter().for_each(|test| say(format!("the response {}", field(test))));
    expect.forwarded.iter().for_each(|test| say(format!("the request at the origin {}", field(test))));
    let texts = [
        ("the body is", &expect.body),
        ("what the client gets contains", &expect.body_has),
        ("what the client gets does not contain", &expect.body_lacks),
        ("target of the request at the origin:", &expect.target),
        ("method of the request at the origin:", &expect.method),
        ("body of the request at the origin:", &expect.upload),
        ("no request reaches the origin whose head contains", &expect.never),
    ];
    for (what, text) in texts {
        text.iter().for_each(|text| say(format!("{what} {text:?}")));
    }
    if let Some(most) = expect.most_requests {
        say(format!("at most {most} requests reach the origin"));
    }
    if let Some(least) = expect.least_requests {
        say(format!("at least {least} requests reach the origin"));
    }
    let flags = [
        (
            expect.refused,
            "the request is refused: an error status or the end of the connection, and nothing reaches the origin",
        ),
        (expect.responds, "a response comes at all"),
        (expect.or_refused, "or the request is refused"),
        (expect.incomplete, "the client can tell that the response is incomplete"),
        (expect.closes, "the connection ends after the response"),
        (expect.ends, "the stream or the connection ends with an error"),
        (expect.well_formed, "nothing comes that HTTP/2 forbids"),
    ];
    flags.into_iter().filter(|(is_set, _)| *is_set).for_each(|(_, words)| say(words.to_owned()));
    if !expect.frames.is_empty() {
        say(format!("a frame `{}` comes", expect.frames.join("` or `")));
    }
    if !expect.not_frames.is_empty() {
        say(format!("no frame `{}` comes", expect.not_frames.join("` or `")));
    }
    if !expect.interim.is_empty() {
        say(format!("an interim response {}", statuses(&expect.interim)));
    }
    lines
}

fn field(test: &FieldTest) -> String {
    let FieldTest { name, test, negated } = test;
    let has = if *negated { "does not have" } else { "has" };
    match test {
        FieldCondition::Present => format!("{has} {name}"),
        FieldCondition::Is(value) => format!("{has} {name}: {value}"),
        FieldCondition::Contains(part) => format!("{has} {name} with {part:?} in it"),
        FieldCondition::Least(least) => format!("{has} {name} of at least {least}"),
        FieldCondition::Most(most) => format!("{has} {name} of at most {most}"),
    }
}
