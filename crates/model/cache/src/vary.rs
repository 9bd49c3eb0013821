//! `Vary`: which requests a stored response serves, among those for its URL (RFC 9111, 4.1).

/// Upper bound on the names compared: a request has no more fields (100 in a head). A longer list counts as `*`, since each name takes
/// memory, and a walk through all fields of each request.
const MOST_NAMES: usize = 100;

/// `Vary` of a response.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub enum Vary {
    /// Serves every request for its URL.
    #[default]
    Nothing,
    /// Serves no other request (`*`).
    Everything,
    /// Serves requests that agree in these fields: names in lower case, sorted, each once.
    Fields(Box<[Box<str>]>),
}

impl Vary {
    /// From the values of all `Vary` fields of a response.
    pub fn parse<'v>(values: impl Iterator<Item = &'v [u8]>) -> Self {
        let mut names: Vec<Box<str>> = Vec::new();
        for member in values.flat_map(|value| value.split(|&b| b == b',')).map(<[u8]>::trim_ascii) {
            match std::str::from_utf8(member) {
                Ok("") => {}
                Ok("*") | Err(_) => return Vary::Everything,
                Ok(_) if names.len() == MOST_NAMES => return Vary::Everything,
                Ok(name) => names.push(name.to_ascii_lowercase().into()),
            }
        }
        names.sort_unstable();
        names.dedup();
        if names.is_empty() { Vary::Nothing } else { Vary::Fields(names.into()) }
    }

    /// Memory of the names, without the overhead of the allocator for each.
    pub fn name_bytes(&self) -> usize {
        self.names().iter().map(|name| size_of_val(name) + name.len()).sum()
    }

    /// The names of the fields; none where there are none, or all of them.
    pub fn names(&self) -> &[Box<str>] {
        if let Vary::Fields(names) = self { names } else { &[] }
    }

    /// Part of the cache key that a request's fields (name, value) add; empty unless the response varies by
    /// fields. Two requests get the same key exactly when the response to one serves the other.
    pub fn secondary_key<'r>(&self, fields: impl Iterator<Item = (&'r [u8], &'r [u8])> + Clone) -> Vec<u8> {
        let mut key = Vec::new();
        let Vary::Fields(names) = self else { return key };
        for name in names {
            let mut separator: &[u8] = b"";
            // A field value cannot hold a line end, so the separator cannot be confused with a value.
            key.extend_from_slice(b"\n");
            for (_, value) in fields.clone().filter(|(n, _)| n.eq_ignore_ascii_case(name.as_bytes())) {
                key.extend_from_slice(if separator.is_empty() { b"=" } else { separator });
                key.extend_from_slice(value.trim_ascii());
                separator = b", ";
            }
        }
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(values: &[&str]) -> Vary {
        Vary::parse(values.iter().map(|v| v.as_bytes()))
    }

    fn key(vary: &Vary, fields: &[(&str, &str)]) -> Vec<u8> {
        vary.secondary_key(fields.iter().map(|(n, v)| (n.as_bytes(), v.as_bytes())))
    }

    #[test]
    fn names_are_gathered_from_all_fields_whatever_case_and_order() {
        assert_eq!(parse(&[]), Vary::Nothing);
        assert_eq!(parse(&["", " , "]), Vary::Nothing);
        assert_eq!(parse(&["Accept-Language, accept"]), parse(&["Accept", "ACCEPT-language"]));
        assert_eq!(parse(&["Accept, *"]), Vary::Everything);
    }

    #[test]
    fn what_varies_by_more_fields_than_a_request_has_varies_by_everything() {
        let names = |count: usize| (0..count).map(|name| format!("n{name:03},")).collect::<String>();
        let most = parse(&[&names(MOST_NAMES)]);
        assert_eq!((most.names().len(), most.name_bytes()), (MOST_NAMES, MOST_NAMES * (16 + 4)));
        assert_eq!(parse(&[&names(MOST_NAMES + 1)]), Vary::Everything);
        assert_eq!(parse(&[&names(MOST_NAMES), "a"]), Vary::Everything);
        assert_eq!(Vary::Everything.name_bytes(), 0);
    }

    #[test]
    fn requests_that_differ_in_a_named_field_get_different_keys() {
        let vary = parse(&["Accept, Cookie"]);
        let text = key(&vary, &[("accept", " text/html "), ("Other", "1")]);
        assert_eq!(text, key(&vary, &[("Other", "2"), ("Accept", "text/html")]));
        assert_ne!(text, key(&vary, &[("Accept", "image/png")]));
        assert_ne!(text, key(&vary, &[("Cookie", "text/html")]));
        assert_ne!(text, key(&vary, &[]));
        assert_ne!(key(&vary, &[("Accept", "")]), key(&vary, &[]));
    }

    #[test]
    fn a_field_in_two_lines_is_one_list() {
        let vary = parse(&["Accept"]);
        assert_eq!(key(&vary, &[("Accept", "a"), ("Accept", "b")]), key(&vary, &[("Accept", "a, b")]));
    }

    #[test]
    fn without_fields_the_key_adds_nothing() {
        assert!(key(&Vary::Nothing, &[("Accept", "a")]).is_empty());
    }
}
