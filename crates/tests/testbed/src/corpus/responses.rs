//! The cases of `responses.txt`. The form is told at its head.

use crate::corpus::format::{name, read, unescape};

/// A response of a server, and what a client gets to see of it.
#[derive(Debug, Clone)]
pub struct Responded {
    pub name: String,
    /// The method of the request; none: any method.
    pub method: Option<String>,
    pub bytes: Vec<u8>,
    /// The server closes the connection behind them.
    pub ends: bool,
    pub seen: Seen,
    /// Names, in lower case, that the client must not see.
    pub lacks: Vec<String>,
}

impl Responded {
    /// The methods of requests to which it is tried.
    pub fn methods(&self) -> Vec<&str> {
        self.method.as_deref().map_or(vec!["GET", "POST"], |method| vec![method])
    }
}

/// Response as a client sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// A whole response with this status, and this body if it matters.
    Whole(u16, Option<Vec<u8>>),
    /// Something that is seen not to be whole, or an error.
    Broken,
}

/// The cases of `responses.txt`.
pub fn responses() -> Vec<Responded> {
    read(include_str!("replies.txt"), response)
}

fn response(lines: &[(&str, &str)], _group: &str, variant: Option<&str>) -> Responded {
    let mut case = Responded {
        name: String::new(),
        method: None,
        bytes: Vec::new(),
        ends: false,
        seen: Seen::Broken,
        lacks: Vec::new(),
    };
    for &(key, text) in lines {
        let text = &variant.map_or(text.to_owned(), |variant| text.replace("{}", variant));
        match (key, &mut case.seen) {
            ("case", _) => case.name = name(text, variant),
            ("rfc" | "with", _) => {}
            ("method", _) => case.method = Some(text.clone()),
            ("line", _) => {
                case.bytes.extend(unescape(text));
                case.bytes.extend(b"\r\n");
            }
            ("send", _) => case.bytes.extend(unescape(text)),
            ("ends", _) => case.ends = true,
            ("gives", _) => case.seen = Seen::Whole(text.parse().expect("a status"), None),
            ("body", Seen::Whole(_, body)) => *body = Some(unescape(text)),
            ("lacks", _) => case.lacks.extend(text.split(", ").map(str::to_ascii_lowercase)),
            ("breaks", _) => case.seen = Seen::Broken,
            _ => panic!("{key}: has no place here: {text}"),
        }
    }
    case
}
