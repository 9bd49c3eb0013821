//! Incremental scanner for the resources that a page names.
//!
//! Pure and tolerant: any bytes are accepted. Tags are found across the borders of chunks; scripts, styles and comments are
//! skipped; a tag that does not end within [`TAG_MAX_BYTES`] is ignored.

/// Longer tags are ignored.
const TAG_MAX_BYTES: usize = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReferenceKind {
    /// Part of the page: an image, a script, a style sheet, a frame.
    Embedded,
    Link,
    /// Not fetched: the base of the page's relative references.
    Base,
}

#[derive(Debug, Default)]
pub struct Scanner {
    state: ScanState,
    /// Current tag, without its angle brackets.
    tag: Vec<u8>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum ScanState {
    #[default]
    Text,
    /// Within a tag; holds the quote of the current attribute value.
    Tag(Option<u8>),
    /// Within a comment; holds the number of hyphens just read.
    Comment(u8),
    /// Within a script or a style sheet; holds its end tag, and how many bytes of that have matched.
    Raw(&'static [u8], usize),
}

impl Scanner {
    /// Scans the next bytes and reports references.
    pub fn push(&mut self, mut bytes: &[u8], mut on_reference: impl FnMut(ReferenceKind, &str)) {
        while !bytes.is_empty() {
            if self.state == ScanState::Text {
                let Some(open) = memchr::memchr(b'<', bytes) else { return };
                bytes = &bytes[open + 1..];
                self.tag.clear();
                self.state = ScanState::Tag(None);
                continue;
            }
            let byte = bytes[0];
            bytes = &bytes[1..];
            self.state = match self.state {
                ScanState::Text => ScanState::Text,
                ScanState::Tag(quote) => self.within_tag(quote, byte, &mut on_reference),
                ScanState::Comment(hyphens) => match byte {
                    b'-' => ScanState::Comment(hyphens.saturating_add(1)),
                    b'>' if hyphens >= 2 => ScanState::Text,
                    _ => ScanState::Comment(0),
                },
                ScanState::Raw(end, matched) => match () {
                    () if matched == end.len() && byte == b'>' => ScanState::Text,
                    () if matched == end.len() => ScanState::Raw(end, matched),
                    () if byte.to_ascii_lowercase() == end[matched] => ScanState::Raw(end, matched + 1),
                    () => ScanState::Raw(end, usize::from(byte == end[0])),
                },
            };
        }
    }

    fn within_tag(
        &mut self,
        quote: Option<u8>,
        byte: u8,
        on_reference: &mut impl FnMut(ReferenceKind, &str),
    ) -> ScanState {
        if byte == b'>' && quote.is_none() {
            return report(&self.tag, on_reference);
        }
        if self.tag.len() == TAG_MAX_BYTES {
            return ScanState::Text;
        }
        self.tag.push(byte);
        if self.tag == b"!--" {
            return ScanState::Comment(0);
        }
        ScanState::Tag(match quote {
            Some(mark) if mark == byte => None,
            Some(mark) => Some(mark),
            // A quote anywhere else is an author's mistake.
            None if matches!(byte, b'"' | b'\'') && follows_equals(&self.tag) => Some(byte),
            None => None,
        })
    }
}

/// Whether an equals sign precedes the last byte.
fn follows_equals(tag: &[u8]) -> bool {
    tag[..tag.len() - 1].trim_ascii_end().ends_with(b"=")
}

/// Reports what a complete tag names; returns the state after it.
fn report(tag: &[u8], on_reference: &mut impl FnMut(ReferenceKind, &str)) -> ScanState {
    let end = tag.iter().position(|b| b.is_ascii_whitespace() || *b == b'/').unwrap_or(tag.len());
    let (name, attributes) = (tag[..end].to_ascii_lowercase(), &tag[end..]);
    let wanted: Option<(ReferenceKind, &str)> = match &name[..] {
        b"img" | b"script" | b"iframe" | b"frame" | b"embed" | b"input" => {
            Some((ReferenceKind::Embedded, "src"))
        }
        b"body" | b"table" | b"td" => Some((ReferenceKind::Embedded, "background")),
        b"link" if is_page_resource(attributes) => Some((ReferenceKind::Embedded, "href")),
        b"a" | b"area" => Some((ReferenceKind::Link, "href")),
        b"base" => Some((ReferenceKind::Base, "href")),
        _ => None,
    };
    if let Some((kind, attribute)) = wanted
        && let Some(value) = value_of(attributes, attribute)
        && let Ok(value) = std::str::from_utf8(value)
    {
        on_reference(kind, value.replace("&amp;", "&").trim());
    }
    match &name[..] {
        b"script" => ScanState::Raw(b"</script", 0),
        b"style" => ScanState::Raw(b"</style", 0),
        _ => ScanState::Text,
    }
}

/// Whether a `link` is needed to display the page.
fn is_page_resource(attributes: &[u8]) -> bool {
    let Some(relation) = value_of(attributes, "rel") else { return false };
    let words = [&b"stylesheet"[..], b"icon", b"preload", b"modulepreload"];
    relation.split(u8::is_ascii_whitespace).any(|word| words.iter().any(|one| word.eq_ignore_ascii_case(one)))
}

/// Value of the first attribute of this name.
fn value_of<'t>(mut text: &'t [u8], name: &str) -> Option<&'t [u8]> {
    loop {
        let begin = text.iter().position(|b| !b.is_ascii_whitespace() && *b != b'/')?;
        text = &text[begin..];
        let end = text.iter().position(|b| b.is_ascii_whitespace() || *b == b'=').unwrap_or(text.len());
        // An equals sign where a name should begin counts as a name of one byte.
        let end = end.max(1);
        let (found, rest) = text.split_at(end);
        let after = rest.trim_ascii_start();
        let Some(after) = after.strip_prefix(b"=") else {
            text = rest;
            continue;
        };
        let after = after.trim_ascii_start();
        let (value, rest) = match after {
            [mark @ (b'"' | b'\''), inner @ ..] => {
                let end = memchr::memchr(*mark, inner).unwrap_or(inner.len());
                (&inner[..end], &inner[(end + 1).min(inner.len())..])
            }
            _ => after.split_at(after.iter().position(u8::is_ascii_whitespace).unwrap_or(after.len())),
        };
        if found.eq_ignore_ascii_case(name.as_bytes()) {
            return Some(value);
        }
        text = rest;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn scan(page: &[u8], step: usize) -> Vec<(ReferenceKind, String)> {
        let (mut scanner, mut all) = (Scanner::default(), Vec::new());
        for piece in page.chunks(step.max(1)) {
            scanner.push(piece, |kind, url| all.push((kind, url.to_owned())));
        }
        all
    }

    fn embedded(page: &str) -> Vec<String> {
        let of_page = |(kind, url): (ReferenceKind, String)| (kind == ReferenceKind::Embedded).then_some(url);
        scan(page.as_bytes(), 7).into_iter().filter_map(of_page).collect()
    }

    const PAGE: &str = "<!DOCTYPE html><HTML><head><base href='/dir/'><link rel=\"icon stylesheet\" href=\"a.css\">\
        <link rel=next href=no.html><script async src = b.js></script><script>x = '<img src=no>'</SCRIPT >\
        <style>p{}<img src=no></style></head><!-- <img src=no> -- > --><body background=c.png>\
        <IMG alt='a > b' SRC=\"d.gif?x=1&amp;y=2\" /><iframe src=e></iframe><a class=q href=' f.html '>f</a>\
        <img src=>1 < 2<img data-src=no><imgsrc=no><img\nsrc='g'>";

    #[test]
    fn references_are_found_by_tag_and_attribute_whatever_their_spelling() {
        assert_eq!(embedded(PAGE), ["a.css", "b.js", "c.png", "d.gif?x=1&y=2", "e", "", "g"]);
        let others: Vec<_> =
            scan(PAGE.as_bytes(), 1000).into_iter().filter(|(k, _)| *k != ReferenceKind::Embedded).collect();
        assert_eq!(others, [(ReferenceKind::Base, "/dir/".into()), (ReferenceKind::Link, "f.html".into())]);
    }

    #[test]
    fn a_quote_that_does_not_end_swallows_no_more_than_a_tag() {
        let page = format!("<img src=\"a{}<img src=b>", "x".repeat(TAG_MAX_BYTES));
        assert_eq!(embedded(&page), ["b"]);
        assert_eq!(embedded("<p it's><img src=a>"), ["a"], "a quote that no value begins with is none");
    }

    proptest! {
        #[test]
        fn it_does_not_matter_in_which_pieces_a_page_comes(
            words in prop::collection::vec(prop::sample::select(vec![
                "<", ">", "<!--", "-->", "<script>", "</script", "<img src=", "'", "\"", "a", " ", "=", "<a href=x>", "/",
                "<style", "</style>", "<link rel=icon href=y>", "\n",
            ]), 0..40),
            step in 1usize..9,
        ) {
            let page = words.concat();
            prop_assert_eq!(scan(page.as_bytes(), step), scan(page.as_bytes(), page.len()));
        }

        #[test]
        fn any_bytes_are_scanned(page in prop::collection::vec(any::<u8>(), 0..300), step in 1usize..50) {
            scan(&page, step);
        }

        #[test]
        fn what_is_written_is_found(urls in prop::collection::vec("[a-z/?=&.]{1,12}", 0..20)) {
            let page: String = urls.iter().map(|url| format!("<p><img alt=\"<\" src=\"{url}\">")).collect();
            prop_assert_eq!(embedded(&page), urls);
        }
    }
}
