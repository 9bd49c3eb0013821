//! Resolution of references in a page (RFC 3986, 5).

/// Longer references are ignored.
const REFERENCE_MAX_BYTES: usize = 2048;

/// Base URL of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseUrl {
    /// `host[:port]`.
    pub authority: String,
    pub path: String,
}

impl BaseUrl {
    /// Resolves a reference; `None` if it cannot be fetched, or is the page itself.
    pub fn resolve(&self, reference: &str) -> Option<BaseUrl> {
        let reference = reference.split('#').next().unwrap_or_default();
        if reference.is_empty() || reference.len() > REFERENCE_MAX_BYTES {
            return None;
        }
        let reference = match scheme(reference) {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") && rest.starts_with("//") => rest,
            Some(_) => return None,
            None => reference,
        };
        if let Some(rest) = reference.strip_prefix("//") {
            let end = rest.find(['/', '?']).unwrap_or(rest.len());
            let fits = |b: u8| b.is_ascii_alphanumeric() || b"-._:[]".contains(&b);
            let authority = &rest[..end];
            let is_host = !authority.is_empty() && authority.bytes().all(fits);
            return is_host.then(|| BaseUrl { authority: authority.into(), path: clean("/", &rest[end..]) });
        }
        let own_path = self.path.split('?').next().unwrap_or("/");
        let path = if reference.starts_with('?') {
            format!("{own_path}{}", escaped(reference))
        } else {
            let folder = &own_path[..own_path.rfind('/').map_or(0, |at| at + 1)];
            clean(folder, reference)
        };
        Some(BaseUrl { authority: self.authority.clone(), path })
    }
}

/// Scheme of a reference, and the rest; `None` if it is relative.
fn scheme(reference: &str) -> Option<(&str, &str)> {
    let end = reference.find([':', '/', '?'])?;
    reference[end..].strip_prefix(':').map(|rest| (&reference[..end], rest))
}

/// Resolves a path against a folder, and removes dot segments.
fn clean(folder: &str, path: &str) -> String {
    let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
    let whole = if path.starts_with('/') { path.to_owned() } else { format!("{folder}{path}") };
    let mut segments: Vec<&str> = Vec::new();
    let mut ends_in_folder = false;
    for segment in whole.split('/').skip(1) {
        ends_in_folder = matches!(segment, "." | "..");
        match segment {
            "." => {}
            ".." => drop(segments.pop()),
            other => segments.push(other),
        }
    }
    let mut cleaned = String::from("/");
    cleaned.push_str(&segments.join("/"));
    if ends_in_folder && !segments.is_empty() {
        cleaned.push('/');
    }
    if let Some(query) = query {
        cleaned.push('?');
        cleaned.push_str(query);
    }
    escaped(&cleaned)
}

/// Escapes what may not stand in a request line.
fn escaped(text: &str) -> String {
    text.bytes().fold(String::with_capacity(text.len()), |mut out, byte| {
        match byte {
            b'!'..=b'~' => out.push(char::from(byte)),
            // Browsers drop these.
            b'\r' | b'\n' | b'\t' => {}
            _ => out.push_str(&format!("%{byte:02X}")),
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn base() -> BaseUrl {
        BaseUrl { authority: "a:81".into(), path: "/d/page.html?x".into() }
    }

    fn resolved(reference: &str) -> Option<String> {
        base().resolve(reference).map(|found| format!("{}{}", found.authority, found.path))
    }

    #[test]
    fn references_are_relative_to_the_page() {
        for (reference, meant) in [
            ("i.png", "a:81/d/i.png"),
            ("./i.png?q", "a:81/d/i.png?q"),
            ("../i.png#part", "a:81/i.png"),
            ("../../i.png", "a:81/i.png"),
            ("/i/.", "a:81/i/"),
            ("..", "a:81/"),
            ("?y", "a:81/d/page.html?y"),
            ("//b/i", "b/i"),
            ("HTTP://b:8?q", "b:8/?q"),
            ("http://b", "b/"),
            ("a b\u{e9}", "a:81/d/a%20b%C3%A9"),
            ("q?to=http://c", "a:81/d/q?to=http://c"),
        ] {
            assert_eq!(resolved(reference).as_deref(), Some(meant), "{reference}");
        }
    }

    #[test]
    fn what_cannot_be_fetched_is_nothing() {
        for reference in
            ["", "#top", "javascript:x()", "mailto:a@b", "https://b/", "data:,x", "http:x", "//", "//u@b/"]
        {
            assert_eq!(resolved(reference), None, "{reference}");
        }
    }

    proptest! {
        #[test]
        fn what_is_found_can_stand_in_a_request_line(reference in "\\PC{0,40}") {
            if let Some(found) = base().resolve(&reference) {
                prop_assert!(found.path.starts_with('/'), "{}", found.path);
                prop_assert!(found.path.bytes().all(|b| b.is_ascii_graphic()) && !found.path.contains('#'));
                prop_assert!(!found.path.split('?').next().unwrap().split('/').any(|s| s == ".."));
            }
        }
    }
}
