//! Case files: from TOML to cases, with the line of every mistake.

mod frames;

use assay_base::settings::{Fields, Mistake, Source, Value};

use crate::case::{
    Applicability, Case, Expect, ExpectedSource, FieldCondition, FieldTest, Level, Request, Response, Step,
};
use crate::template::{placeholders, unknown, with_row};

const TOP: [&str; 5] = ["topic", "about", "applies", "isolated", "case"];
const CASE: [&str; 15] = [
    "name",
    "level",
    "rfc",
    "section",
    "rule",
    "depends",
    "each",
    "origin",
    "steps",
    "applies",
    "isolated",
    "alone",
    "tries",
    "validated",
    "part",
];
const STEP: [&str; 19] = [
    "method",
    "frames",
    "repeat",
    "path",
    "host",
    "version",
    "fields",
    "body",
    "raw",
    "new-connection",
    "wait",
    "within",
    "setup",
    "copies",
    "origin",
    "validated",
    "part",
    "expect",
    "note",
];
const ORIGIN: [&str; 10] =
    ["status", "fields", "body", "raw", "delay", "cut", "chunked", "date", "interim", "trailers"];
const EXPECT: [&str; 28] = [
    "ends",
    "frames",
    "not-frames",
    "well-formed",
    "served",
    "from",
    "not-from",
    "status",
    "not-status",
    "body",
    "body-lacks",
    "body-has",
    "or-refused",
    "responds",
    "fields",
    "not-fields",
    "forwarded",
    "not-forwarded",
    "target",
    "method",
    "upload",
    "most-requests",
    "least-requests",
    "refused",
    "never",
    "closes",
    "incomplete",
    "interim",
];

/// Longest wait of a step, in seconds: a suite is to end while somebody watches it.
const MAX_WAIT_S: f64 = 60.0;
/// Most steps of a case, and most copies of a request.
const MAX_STEPS: usize = 50;
const MAX_COPIES: u64 = 50;
/// Most tries that a case can ask for.
const MAX_TRIES: u64 = 100;
/// Parts of a request, which a request that is written out cannot have.
const PARTS: [&str; 6] = ["method", "path", "fields", "body", "version", "host"];
/// The name of a row in `each`.
const ROW_NAME: &str = "as";

/// A file of cases.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseFile {
    pub topic: String,
    /// Description of the topic, in a sentence.
    pub about: String,
    /// Cases; parameterised ones once for each row.
    pub cases: Vec<Case>,
}

/// Reads a file of cases; `file` names it in messages.
pub fn read(file: &str, text: &str) -> Result<CaseFile, Mistake> {
    let source = Source { file, text };
    let table = source.parse()?;
    let top = Fields::whole(source, "a case file", &table);
    top.only(&TOP)?;
    let topic = top.need("topic", "one word for what its cases are about, like \"freshness\"")?;
    let topic_name = name(&topic, false)?;
    let common = Common {
        file,
        topic: topic_name.clone(),
        applies: top.get("applies").map_or(Ok(Applicability::Cache), |value| applies(&value))?,
        isolated: top.get("isolated").map_or(Ok(false), |value| value.flag())?,
    };
    let mut cases = Vec::new();
    for fields in top.tables("case", "[[case]]", &CASE)? {
        for row in rows(&fields)? {
            cases.push(case(&fields, &common, &row)?);
        }
    }
    if cases.is_empty() {
        return Err(topic.wrong("the file has no [[case]]"));
    }
    Ok(CaseFile { topic: topic_name, about: texts_or_none(&top, "about")?.unwrap_or_default(), cases })
}

/// Settings that the cases of a file share.
struct Common<'a> {
    file: &'a str,
    topic: String,
    applies: Applicability,
    isolated: bool,
}

/// The values of one row of a parameterised case.
#[derive(Debug, Default)]
struct Row {
    name: Option<String>,
    values: Vec<(String, String)>,
}

impl Row {
    fn text(&self, value: &Value<'_>) -> Result<String, Mistake> {
        let text = with_row(value.text()?, &self.values);
        match unknown(&text) {
            Some(name) => Err(value.wrong(&format!(
                "`{{{name}}}` stands for nothing; there are {{url}}, {{token}}, {{host}}, {{scheme}}, {{date}}, {{date+SECONDS}}, {{a-COUNT}} \
                 and the names in `each`"
            ))),
            None => Ok(text),
        }
    }

    /// A text for readers. Nothing is sent of it, so only the row's values and its name (`{as}`) stand for something.
    fn words(&self, value: &Value<'_>) -> Result<String, Mistake> {
        let name = self.name.iter().map(|name| (ROW_NAME.to_owned(), name.clone()));
        let values: Vec<(String, String)> = self.values.iter().cloned().chain(name).collect();
        let text = with_row(value.text()?, &values);
        if let Some(name) = placeholders(&text).next() {
            return Err(value.wrong(&format!(
                "`{{{name}}}` stands for nothing here; there are {{as}} and the other names in `each`"
            )));
        }
        Ok(text)
    }

    fn texts(&self, fields: &Fields<'_>, key: &str) -> Result<Vec<String>, Mistake> {
        match fields.get(key) {
            Some(value) => value.list()?.iter().map(|item| self.text(item)).collect(),
            None => Ok(Vec::new()),
        }
    }

    fn text_in(&self, fields: &Fields<'_>, key: &str) -> Result<Option<String>, Mistake> {
        fields.get(key).map(|value| self.text(&value)).transpose()
    }

    /// An integer, or a text that is one once the row's values are in it.
    fn whole(&self, value: &Value<'_>, least: u64, most: u64) -> Result<u64, Mistake> {
        let Some(text) = value.as_text() else { return value.whole(least, most) };
        let number =
            with_row(text, &self.values).parse().ok().filter(|number| (least..=most).contains(number));
        number.ok_or_else(|| value.wrong(&format!("`{text}` is not an integer from {least} to {most}")))
    }

    fn status(&self, value: &Value<'_>) -> Result<u16, Mistake> {
        // Fits: the bound says so.
        self.whole(value, 100, 999).map(|status| status as u16)
    }
}

fn rows(case: &Fields<'_>) -> Result<Vec<Row>, Mistake> {
    let Some(each) = case.get("each") else { return Ok(vec![Row::default()]) };
    let mut rows: Vec<Row> = Vec::new();
    for item in each.list()? {
        let fields = item.fields("a row of `each`")?;
        let own = name(&fields.need(ROW_NAME, "what the row is called in the name of the case")?, true)?;
        if rows.iter().any(|row| row.name.as_deref() == Some(&own)) {
            return Err(item.wrong(&format!("two rows are called `{own}`")));
        }
        let values = fields.all().into_iter().filter(|value| value.key != ROW_NAME);
        let values = values.map(|value| Ok((value.key.clone(), value.plain()?))).collect::<Result<_, _>>()?;
        rows.push(Row { name: Some(own), values });
    }
    Ok(rows)
}

fn case(fields: &Fields<'_>, common: &Common<'_>, row: &Row) -> Result<Case, Mistake> {
    let own =
        name(&fields.need("name", "a name that no other case has, like \"no-store-response\"")?, false)?;
    let rfc = fields.get("rfc").map(|value| row.whole(&value, 1, 99_999)).transpose()?;
    let section = fields.need("section", "the section of the RFC, or where the behaviour is described")?;
    let rule = fields.need("rule", "the requirement, in one sentence")?;
    let value = fields.need("steps", "what is exchanged, as a list of tables")?;
    let steps = value.list().map_err(|_| value.wrong("the list is empty, and a case needs a step"))?;
    if steps.len() > MAX_STEPS {
        return Err(
            fields.wrong(&format!("a case has at most {MAX_STEPS} steps, and this one has {}", steps.len()))
        );
    }
    let usual = Usual {
        origin: fields.get("origin").map(|value| response(&value, row)).transpose()?,
        validated: fields.get("validated").map(|value| response(&value, row)).transpose()?,
        part: fields.get("part").map(|value| response(&value, row)).transpose()?,
    };
    let count = steps.len();
    let steps: Vec<Step> =
        steps.iter().map(|value| step(value, &usual, row, count)).collect::<Result<_, _>>()?;
    if steps.iter().all(|step| step.is_setup || step.expect == Expect::default()) {
        return Err(
            fields.wrong("no step of the case has an `expect` that is not `setup`: it could not fail")
        );
    }
    Ok(Case {
        name: match &row.name {
            Some(of_row) => format!("{own}/{of_row}"),
            None => own,
        },
        topic: common.topic.clone(),
        level: level(&fields.need("level", "MUST, SHOULD, MAY or behaviour")?, row)?,
        rfc: rfc.map(|number| number as u32),
        section: row.words(&section)?,
        rule: row.words(&rule)?,
        depends: row.texts(fields, "depends")?,
        applies: fields.get("applies").map_or(Ok(common.applies), |value| applies(&value))?,
        isolated: fields.get("isolated").map_or(Ok(common.isolated), |value| value.flag())?,
        alone: fields.get("alone").map_or(Ok(false), |value| value.flag())?,
        tries: fields.get("tries").map_or(Ok(1), |value| value.whole(1, MAX_TRIES))? as usize,
        steps,
        location: format!("{}:{}", common.file, fields.line()),
    })
}

/// Responses of steps that have none of their own.
struct Usual {
    origin: Option<Response>,
    validated: Option<Response>,
    part: Option<Response>,
}

fn step(value: &Value<'_>, usual: &Usual, row: &Row, count: usize) -> Result<Step, Mistake> {
    let fields = value.fields("a step")?;
    fields.only(&STEP)?;
    let flag = |key: &str| fields.get(key).map_or(Ok(false), |value| value.flag());
    let seconds = |key: &str| fields.get(key).map(|value| value.number(0.0, MAX_WAIT_S)).transpose();
    let raw = row.text_in(&fields, "raw")?;
    let has = |keys: &[&str]| keys.iter().any(|key| fields.get(key).is_some());
    if raw.is_some() && (has(&PARTS) || has(&["frames"])) {
        return Err(fields.wrong("`raw` is the whole request: nothing else of it can be said beside it"));
    }
    if has(&["frames"]) && has(&PARTS) {
        return Err(fields.wrong("`frames` is the whole request: nothing else of it can be said beside it"));
    }
    if has(&["repeat"]) && !has(&["frames"]) {
        return Err(fields.wrong("there are no `frames` to repeat"));
    }
    let request = Request {
        raw,
        method: row.text_in(&fields, "method")?.unwrap_or_else(|| "GET".to_owned()),
        path: row.text_in(&fields, "path")?.unwrap_or_default(),
        host: row.text_in(&fields, "host")?,
        version: fields.get("version").map_or(Ok("1.1".to_owned()), |value| version(&value, row))?,
        fields: lines(&fields, "fields", row)?,
        body: row.text_in(&fields, "body")?,
        new_connection: flag("new-connection")?,
        frames: frames::frames(&fields, row)?,
        repeat: frames::repeat(&fields)?,
    };
    let own_origin = fields.get("origin").map(|value| response(&value, row)).transpose()?;
    let own_validated = fields.get("validated").map(|value| response(&value, row)).transpose()?;
    let own_part = fields.get("part").map(|value| response(&value, row)).transpose()?;
    Ok(Step {
        request,
        wait_s: seconds("wait")?.unwrap_or(0.0),
        within_s: seconds("within")?,
        is_setup: flag("setup")?,
        copies: fields.get("copies").map_or(Ok(1), |value| value.whole(1, MAX_COPIES))? as u32,
        origin: own_origin.or_else(|| usual.origin.clone()).unwrap_or_else(usual_response),
        validated: own_validated.or_else(|| usual.validated.clone()),
        part: own_part.or_else(|| usual.part.clone()),
        expect: fields.get("expect").map_or(Ok(Expect::default()), |value| expect(&value, row, count))?,
    })
}

/// Default response of an origin: fresh for an hour.
fn usual_response() -> Response {
    Response {
        raw: None,
        status: 200,
        fields: vec!["Cache-Control: max-age=3600".to_owned()],
        body: None,
        delay_s: 0.0,
        cut: None,
        chunked: false,
        dated: true,
        interim: Vec::new(),
        trailers: Vec::new(),
    }
}

fn response(value: &Value<'_>, row: &Row) -> Result<Response, Mistake> {
    let fields = value.fields("a response of the origin")?;
    fields.only(&ORIGIN)?;
    let usual = usual_response();
    let own =
        if fields.get("fields").is_some() { lines(&fields, "fields", row)? } else { usual.fields.clone() };
    Ok(Response {
        raw: row.text_in(&fields, "raw")?,
        status: fields.get("status").map_or(Ok(usual.status), |value| row.status(&value))?,
        fields: own.into_iter().filter(|line| !line.is_empty()).collect(),
        body: row.text_in(&fields, "body")?,
        delay_s: fields.get("delay").map(|value| value.number(0.0, MAX_WAIT_S)).transpose()?.unwrap_or(0.0),
        cut: fields
            .get("cut")
            .map(|value| row.whole(&value, 0, 1 << 20))
            .transpose()?
            .map(|bytes| bytes as usize),
        chunked: fields.get("chunked").map_or(Ok(false), |value| value.flag())?,
        dated: fields.get("date").map_or(Ok(true), |value| value.flag())?,
        interim: row.texts(&fields, "interim")?,
        trailers: lines(&fields, "trailers", row)?,
    })
}

fn expect(value: &Value<'_>, row: &Row, steps: usize) -> Result<Expect, Mistake> {
    let fields = value.fields("what is expected")?;
    fields.only(&EXPECT)?;
    let flag = |key: &str| fields.get(key).map_or(Ok(false), |value| value.flag());
    let statuses = |key: &str| -> Result<Vec<u16>, Mistake> {
        fields
            .get(key)
            .map_or(Ok(Vec::new()), |value| value.list()?.iter().map(|item| row.status(item)).collect())
    };
    let numbers = |key: &str| -> Result<Vec<usize>, Mistake> {
        let Some(value) = fields.get(key) else { return Ok(Vec::new()) };
        value.list()?.iter().map(|item| row.whole(item, 1, steps as u64).map(|step| step as usize)).collect()
    };
    let tests = |key: &str, negated: bool| -> Result<Vec<FieldTest>, Mistake> {
        let Some(value) = fields.get(key) else { return Ok(Vec::new()) };
        value.list()?.iter().map(|item| field_test(item, row, negated)).collect()
    };
    let patterns = |key: &str| -> Result<Vec<String>, Mistake> {
        let Some(value) = fields.get(key) else { return Ok(Vec::new()) };
        value.list()?.iter().map(|item| frame_pattern(item, row)).collect()
    };
    let count = |key: &str| -> Result<Option<usize>, Mistake> {
        fields.get(key).map(|value| row.whole(&value, 0, MAX_COPIES).map(|count| count as usize)).transpose()
    };
    Ok(Expect {
        served: fields.get("served").map(|value| served(&value, row)).transpose()?,
        from: numbers("from")?,
        not_from: numbers("not-from")?,
        status: statuses("status")?,
        not_status: statuses("not-status")?,
        body: row.text_in(&fields, "body")?,
        body_lacks: row.text_in(&fields, "body-lacks")?,
        body_has: row.text_in(&fields, "body-has")?,
        or_refused: flag("or-refused")?,
        responds: flag("responds")?,
        fields: [tests("fields", false)?, tests("not-fields", true)?].concat(),
        forwarded: [tests("forwarded", false)?, tests("not-forwarded", true)?].concat(),
        target: row.text_in(&fields, "target")?,
        method: row.text_in(&fields, "method")?,
        upload: row.text_in(&fields, "upload")?,
        most_requests: count("most-requests")?,
        least_requests: count("least-requests")?,
        refused: flag("refused")?,
        never: row.text_in(&fields, "never")?,
        incomplete: flag("incomplete")?,
        closes: flag("closes")?,
        ends: flag("ends")?,
        frames: patterns("frames")?,
        not_frames: patterns("not-frames")?,
        well_formed: flag("well-formed")?,
        interim: statuses("interim")?,
    })
}

/// The type of a frame, and other words of it.
fn frame_pattern(value: &Value<'_>, row: &Row) -> Result<String, Mistake> {
    let text = row.text(value)?;
    let name = text.split_whitespace().next().unwrap_or_default();
    match crate::http2::frame::kind_of(name) {
        Some(_) => Ok(text),
        None => {
            Err(value.wrong(&format!("`{name}` is no type of a frame, such as \"GOAWAY PROTOCOL_ERROR\"")))
        }
    }
}

/// `Name`, `Name: value`, `Name ~ part`, `Name >= number` or `Name <= number`.
fn field_test(value: &Value<'_>, row: &Row, negated: bool) -> Result<FieldTest, Mistake> {
    let text = row.text(value)?;
    let at = text.find(|c: char| !(c.is_ascii_alphanumeric() || "-_".contains(c))).unwrap_or(text.len());
    let (field, rest) = text.split_at(at);
    let number = |text: &str| {
        text.trim().parse().map_err(|_| value.wrong(&format!("`{}` is not an integer", text.trim())))
    };
    let rest = rest.trim_start();
    let test = match () {
        () if rest.is_empty() => FieldCondition::Present,
        () if rest.starts_with(':') => FieldCondition::Is(rest[1..].trim().to_owned()),
        () if rest.starts_with('~') => FieldCondition::Contains(rest[1..].trim().to_owned()),
        () if rest.starts_with(">=") => FieldCondition::Least(number(&rest[2..])?),
        () if rest.starts_with("<=") => FieldCondition::Most(number(&rest[2..])?),
        () => {
            return Err(value.wrong(&format!(
                "`{text}` is no condition on a field: write \"Name\", \"Name: value\", \"Name ~ part\", \"Name >= 5\" or \"Name <= 5\""
            )));
        }
    };
    if field.is_empty() {
        return Err(value.wrong("the name of a field is missing"));
    }
    Ok(FieldTest { name: field.to_owned(), test, negated })
}

/// Field lines, each with a colon.
fn lines(fields: &Fields<'_>, key: &str, row: &Row) -> Result<Vec<String>, Mistake> {
    let Some(value) = fields.get(key) else { return Ok(Vec::new()) };
    let line = |item: &Value<'_>| {
        let text = row.text(item)?;
        // A row may leave a field out.
        match text.is_empty() || text.contains(':') {
            true => Ok(text),
            false => {
                Err(item.wrong(&format!("`{text}` is no field line, such as \"Cache-Control: no-store\"")))
            }
        }
    };
    let all: Vec<String> = value.list()?.iter().map(line).collect::<Result<_, _>>()?;
    Ok(all.into_iter().filter(|line| !line.is_empty()).collect())
}

fn level(value: &Value<'_>, row: &Row) -> Result<Level, Mistake> {
    let text = row.text(value)?;
    Level::ALL.into_iter().find(|level| level.word() == text).ok_or_else(|| {
        value.wrong(&format!("`{text}` is no level; there are MUST, SHOULD, MAY and behaviour"))
    })
}

fn applies(value: &Value<'_>) -> Result<Applicability, Mistake> {
    match value.text()? {
        "cache" => Ok(Applicability::Cache),
        "proxy" => Ok(Applicability::Proxy),
        other => Err(value.wrong(&format!("`{other}` is neither \"cache\" nor \"proxy\""))),
    }
}

fn served(value: &Value<'_>, row: &Row) -> Result<ExpectedSource, Mistake> {
    match row.text(value)?.as_str() {
        "store" => Ok(ExpectedSource::Store),
        "origin" => Ok(ExpectedSource::Origin),
        "validated" => Ok(ExpectedSource::Validated),
        "fetched" => Ok(ExpectedSource::Fetched),
        other => Err(value.wrong(&format!(
            "`{other}` does not say who serves a response; there are \"store\", \"origin\", \"validated\" and \"fetched\""
        ))),
    }
}

fn version(value: &Value<'_>, row: &Row) -> Result<String, Mistake> {
    match row.text(value)?.as_str() {
        known @ ("1.0" | "1.1" | "2") => Ok(known.to_owned()),
        other => Err(value.wrong(&format!(
            "`{other}` is no version that a case can send; there are \"1.0\", \"1.1\" and \"2\""
        ))),
    }
}

/// Lower-case words joined by hyphens; rows may have dots and underscores too.
fn name(value: &Value<'_>, of_row: bool) -> Result<String, Mistake> {
    let text = value.text()?;
    let fits =
        |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || (of_row && "._".contains(c));
    match !text.is_empty() && text.len() <= 60 && text.chars().all(fits) {
        true => Ok(text.to_owned()),
        false => {
            Err(value.wrong(&format!("`{text}` is no name: it has lower-case letters, digits and hyphens")))
        }
    }
}

fn texts_or_none(fields: &Fields<'_>, key: &str) -> Result<Option<String>, Mistake> {
    Ok(fields.get(key).map(|value| value.text()).transpose()?.map(str::to_owned))
}
