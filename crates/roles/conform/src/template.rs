//! Placeholders in the texts of a case: `{url}`, `{date-10}` and the like, and the values of a row of a parameterised case.

use assay_http::date::{DATE_BYTES, write_date};

/// Values of placeholders in one try of a case.
#[derive(Debug, Clone)]
pub struct Values {
    /// Unique to the try: no other URL contains it.
    pub token: String,
    /// `Host` of the client.
    pub host: String,
    /// `https` where clients speak TLS, otherwise `http`.
    pub scheme: &'static str,
    /// Seconds since the epoch, at the moment in which the text is sent.
    pub now_unix_s: u64,
}

/// Names that stand for something in every case.
const KNOWN: [&str; 5] = ["url", "token", "host", "scheme", "other-scheme"];

/// Replaces placeholders for which `value` has something; others stay.
fn replaced(text: &str, value: impl Fn(&str) -> Option<String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let found = rest.find('}').and_then(|end| Some((value(&rest[1..end])?, end + 1)));
        let (piece, length) = found.unwrap_or_else(|| ("{".to_owned(), 1));
        out.push_str(&piece);
        rest = &rest[length..];
    }
    out.push_str(rest);
    out
}

/// The text with the values of a row.
pub fn with_row(text: &str, row: &[(String, String)]) -> String {
    replaced(text, |name| row.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone()))
}

/// The text as it is sent.
pub fn with_values(text: &str, values: &Values) -> String {
    replaced(text, |name| match name {
        "url" => Some(format!("/{}", values.token)),
        "token" => Some(values.token.clone()),
        "host" => Some(values.host.clone()),
        "scheme" => Some(values.scheme.to_owned()),
        "other-scheme" => Some(if values.scheme == "http" { "https" } else { "http" }.to_owned()),
        name => {
            if let Some(count) = repeat(name) {
                return Some("a".repeat(count));
            }
            offset(name).map(|offset| date(values.now_unix_s.saturating_add_signed(offset)))
        }
    })
}

/// The first placeholder that stands for nothing.
pub fn unknown(text: &str) -> Option<&str> {
    let is_known = |name: &str| KNOWN.contains(&name) || offset(name).is_some() || repeat(name).is_some();
    placeholders(text).find(|name| !is_known(name))
}

/// Names between braces that have the form of a placeholder, in their order. Other text in braces is skipped.
pub fn placeholders(text: &str) -> impl Iterator<Item = &str> {
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "+-_".contains(c);
    let behind_braces = text.split('{').skip(1).filter_map(|rest| Some(rest.split_once('}')?.0));
    behind_braces.filter(move |name| !name.is_empty() && name.chars().all(is_name))
}

/// `date`, `date+10`, `date-10`: seconds from now.
fn offset(name: &str) -> Option<i64> {
    match name.strip_prefix("date")? {
        "" => Some(0),
        signed if signed.starts_with(['+', '-']) => signed.parse().ok(),
        _ => None,
    }
}

/// `a-8192`: so many times the letter a.
fn repeat(name: &str) -> Option<usize> {
    name.strip_prefix("a-")?.parse().ok().filter(|count| *count <= 1_000_000)
}

fn date(unix_s: u64) -> String {
    let mut out = [0; DATE_BYTES];
    write_date(unix_s, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_stand_for_the_url_the_host_and_dates() {
        let values =
            Values { token: "t1".into(), host: "h:80".into(), scheme: "http", now_unix_s: 784_111_777 };
        let text = "{scheme} {other-scheme} {host}{url}?{token} {date} {date-60} {a-3} {none} {";
        assert_eq!(
            with_values(text, &values),
            "http https h:80/t1?t1 Sun, 06 Nov 1994 08:49:37 GMT Sun, 06 Nov 1994 08:48:37 GMT aaa {none} {"
        );
    }

    #[test]
    fn a_row_replaces_its_own_names_and_leaves_the_others() {
        let row = [("value".to_owned(), "no-store".to_owned())];
        assert_eq!(with_row("a: {value} {url}", &row), "a: no-store {url}");
    }

    #[test]
    fn a_placeholder_that_stands_for_nothing_is_found() {
        assert_eq!(unknown("a {url} {date+5} {a-10} {\"json\": 1}"), None);
        assert_eq!(unknown("a {vlaue}"), Some("vlaue"));
    }
}
