//! Files of cases. The form is told at the head of `requests.txt`; `responses.rs` reads the other one.

use crate::corpus::ending::Ending;

/// One case, or one variant of it.
#[derive(Debug, Clone, Default)]
pub struct Case {
    pub rule: String,
    /// Mark of the variant, as it stands in the file.
    pub variant: Option<String>,
    /// The heading it stands under.
    pub group: String,
    /// Section of the RFC that holds the rule.
    pub rfc: String,
    pub bytes: Vec<u8>,
    /// Requests that must be forwarded, in order.
    pub passes: Vec<Pass>,
    /// End of the connection after them.
    pub end: Ending,
}

impl Case {
    /// Name in messages.
    pub fn name(&self) -> String {
        let name = name(&self.rule, self.variant.as_deref());
        format!("{}, {name} (RFC {})", self.group, self.rfc)
    }
}

/// A request that must come out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pass {
    pub method: String,
    pub target: String,
    pub body: Vec<u8>,
    /// Field lines that it must have: name in lower case, value; one that ends with `*` may go on.
    pub has: Vec<(String, Vec<u8>)>,
    /// Names, in lower case, that it must not have.
    pub lacks: Vec<String>,
}

/// The cases of `requests.txt`.
pub fn requests() -> Vec<Case> {
    read(include_str!("requests.txt"), request)
}

/// The cases of a text, each made from its lines, its heading and its variant.
pub fn read<C>(text: &str, case: impl Fn(&[(&str, &str)], &str, Option<&str>) -> C) -> Vec<C> {
    let mut cases = Vec::new();
    let mut group = String::new();
    for paragraph in text.split("\n\n").map(str::trim_start) {
        if let Some(heading) = paragraph.strip_prefix("## ") {
            group = heading.trim().to_owned();
            continue;
        }
        let lines: Vec<(&str, &str)> =
            paragraph.lines().filter(|line| !line.starts_with('#')).map(key).collect();
        if lines.is_empty() {
            continue;
        }
        let variants: Vec<&str> =
            lines.iter().filter(|(key, _)| *key == "with").map(|(_, text)| *text).collect();
        if variants.is_empty() {
            cases.push(case(&lines, &group, None));
        }
        cases.extend(variants.into_iter().map(|variant| case(&lines, &group, Some(variant))));
    }
    cases
}

fn key(line: &str) -> (&str, &str) {
    assert_eq!(line, line.trim_end(), "white space at the end of a line cannot be seen");
    let (key, text) = line.split_once(':').unwrap_or_else(|| panic!("no key: {line}"));
    (key, text.strip_prefix(' ').unwrap_or(text))
}

fn request(lines: &[(&str, &str)], group: &str, variant: Option<&str>) -> Case {
    let variant_of = variant.map(str::to_owned);
    let mut case = Case { group: group.into(), variant: variant_of, ..Case::default() };
    for &(key, text) in lines {
        let text = &variant.map_or(text.to_owned(), |variant| text.replace("{}", variant));
        let last = case.passes.last_mut();
        match (key, last) {
            ("case", _) => case.rule = text.clone(),
            ("rfc", _) => case.rfc = text.clone(),
            ("line", _) => {
                case.bytes.extend(unescape(text));
                case.bytes.extend(b"\r\n");
            }
            ("send", _) => case.bytes.extend(unescape(text)),
            ("with", _) => {}
            ("pass", _) => {
                let (method, target) = text.split_once(' ').expect("a method and a target");
                let readable = |text| String::from_utf8(unescape(text)).expect("is ASCII");
                let (method, target) = (readable(method), readable(target));
                case.passes.push(Pass { method, target, ..Pass::default() });
            }
            ("body", Some(pass)) => pass.body = unescape(text),
            ("has", Some(pass)) => {
                let (name, value) = text.split_once(':').expect("a name and a value");
                pass.has.push((name.to_ascii_lowercase(), unescape(value).trim_ascii().to_vec()));
            }
            ("lacks", Some(pass)) => pass.lacks.extend(text.split(", ").map(str::to_ascii_lowercase)),
            ("refuse", _) => {
                let (status, place) = text.split_once(' ').unwrap_or((text, ""));
                let status = status.parse().expect("a status");
                case.end = Ending::Refused { status, in_body: place == "in body" };
            }
            ("wait", _) => case.end = Ending::Waits { in_body: text == "body" },
            ("close", _) => case.end = Ending::Closes,
            _ => panic!("{key}: has no place here: {text}"),
        }
    }
    case
}

/// Name of a case in messages.
pub fn name(rule: &str, variant: Option<&str>) -> String {
    format!("{rule}{}", variant.map(|variant| format!(" [{variant:.60}]")).unwrap_or_default())
}

/// Bytes as they are written in the file.
pub fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        bytes.extend(rest[..at].bytes());
        let after = &rest[at + 2..];
        rest = match &rest[at + 1..at + 2] {
            "x" => {
                bytes.push(u8::from_str_radix(&after[..2], 16).expect("two hexadecimal digits"));
                &after[2..]
            }
            "*" => {
                let (count, after) = after.split_once('(').expect("a count");
                let end = closing(after);
                bytes.extend(unescape(&after[..end]).repeat(count.parse().expect("a count")));
                &after[end + 1..]
            }
            one => {
                let at = "rnt0\\".find(one).unwrap_or_else(|| panic!("\\{one} means nothing"));
                bytes.push(b"\r\n\t\0\\"[at]);
                after
            }
        };
    }
    bytes.extend(rest.bytes());
    bytes
}

/// End of the parenthesis that opens before this text.
fn closing(text: &str) -> usize {
    let mut depth = 1;
    let end = text.bytes().position(|byte| {
        depth += i32::from(byte == b'(') - i32::from(byte == b')');
        depth == 0
    });
    end.expect("an end")
}
