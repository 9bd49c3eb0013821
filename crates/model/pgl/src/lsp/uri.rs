//! Conversion of `file:` URIs to paths and back.

/// Path of a `file:` URI; none for other schemes.
pub(crate) fn path(uri: &str) -> Option<String> {
    let rest = uri.strip_prefix("file://")?;
    // The authority, if any, is the name of this machine.
    let path = &rest[rest.find('/')?..];
    let mut bytes = Vec::with_capacity(path.len());
    let mut left = path.as_bytes();
    while let Some((first, rest)) = left.split_first() {
        let coded = rest.get(..2).filter(|_| *first == b'%').and_then(|digits| {
            let digits = std::str::from_utf8(digits).ok()?;
            u8::from_str_radix(digits, 16).ok()
        });
        bytes.push(coded.unwrap_or(*first));
        left = if coded.is_some() { &rest[2..] } else { rest };
    }
    String::from_utf8(bytes).ok()
}

/// URI of an absolute path; none for a relative one.
pub(crate) fn of_path(path: &str) -> Option<String> {
    if !path.starts_with('/') {
        return None;
    }
    let mut uri = String::from("file://");
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            uri.push_str(&format!("%{byte:02X}"));
        }
    }
    Some(uri)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn codes_are_read_and_strangers_are_not_paths() {
        assert_eq!(path("file:///a/b%20c%C3%A9.pg").as_deref(), Some("/a/b cé.pg"));
        assert_eq!(path("file://localhost/a").as_deref(), Some("/a"));
        assert_eq!(path("file:///a%zz%4").as_deref(), Some("/a%zz%4"));
        assert_eq!((path("untitled:Untitled-1"), path("file:///%FF"), path("file://x")), (None, None, None));
        assert_eq!((of_path("a.pg"), of_path("<bundled>/a.pg")), (None, None));
    }

    proptest! {
        #[test]
        fn any_path_comes_back(rest in "\\PC{0,30}") {
            let absolute_path = format!("/{rest}");
            let uri = of_path(&absolute_path).unwrap();
            prop_assert_eq!(path(&uri), Some(absolute_path));
        }
    }
}
