//! The resources that a page names, as far as can be said while it arrives.
//!
//! Pure, and tolerant: whatever the bytes are, there is a response. Tags are found across the borders of what arrives;
//! scripts, styles and comments are passed over; a tag that does not end in time is none.

/// Longest tag that is looked at, in bytes.
const LONGEST_TAG: usize = 4096;

/// What a reference is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A part of the page: an image, a script, a style sheet, a frame.
    Embedded,
    Link,
    /// Not fetched: what the page's relative references are relative to.
    Base,
}

/// Reads a page piece by piece.
#[derive(Debug, Default)]
pub struct Scanner {
    state: State,
    /// The tag that is being read, without its angle brackets.
    tag: Vec<u8>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Text,
    /// Within a tag; the quote that an attribute's value began with.
    Tag(Option<u8>),
    /// Within a comment; so many of its last bytes were hyphens.
    Comment(u8),
    /// Within a script or a style sheet, until its end tag; so many bytes of that were seen.
    Raw(&'static [u8], usize),
}

impl Scanner {
    /// Reads on, and hands out what it finds.
    pub fn push(&mut self, mut bytes: &[u8], mut found: impl FnMut(Kind, &str)) {
        while !bytes.is_empty() {
            if self.state == State::Text {
                let Some(open) = memchr::memchr(b'<', bytes) else { return };
                bytes = &bytes[open + 1..];
                self.tag.clear();
                self.state = State::Tag(None);
                continue;
            }
            let byte = bytes[0];
            bytes = &bytes[1..];
            self.state = match self.state {
                State::Text => State::Text,
                State::Tag(quote) => self.within_tag(quote, byte, &mut found),
                State::Comment(hyphens) => match byte {
                    b'-' => State::Comment(hyphens.saturating_add(1)),
                    b'>' if hyphens >= 2 => State::Text,
                    _ => State::Comment(0),
                },
                State::Raw(end, seen) => match () {
                    () if seen == end.len() && byte == b'>' => State::Text,
                    () if seen == end.len() => State::Raw(end, seen),
                    () if byte.to_ascii_lowercase() == end[seen] => State::Raw(end, seen + 1),
                    () => State::Raw(end, usize::from(byte == end[0])),
                },
            };
        }
    }

    fn within_tag(&mut self, quote: Option<u8>, byte: u8, found: &mut impl FnMut(Kind, &str)) -> State {
        if byte == b'>' && quote.is_none() {
            return report(&self.tag, found);
        }
        if self.tag.len() == LONGEST_TAG {
            return State::Text;
        }
        self.tag.push(byte);
        if self.tag == b"!--" {
            return State::Comment(0);
        }
        State::Tag(match quote {
            Some(mark) if mark == byte => None,
            Some(mark) => Some(mark),
            // Elsewhere, a quote is a slip of the author's.
            None if matches!(byte, b'"' | b'\'') && follows_equals(&self.tag) => Some(byte),
            None => None,
        })
    }
}

/// Whether what stands before the last byte is an equals sign.
fn follows_equals(tag: &[u8]) -> bool {
    tag[..tag.len() - 1].trim_ascii_end().ends_with(b"=")
}

/// Hands out what a complete tag names; how to go on after it.
fn report(tag: &[u8], found: &mut impl FnMut(Kind, &str)) -> State {
    let end = tag.iter().position(|b| b.is_ascii_whitespace() || *b == b'/').unwrap_or(tag.len());
    let (name, attributes) = (tag[..end].to_ascii_lowercase(), &tag[end..]);
    let wanted: Option<(Kind, &str)> = match &name[..] {
        b"img" | b"script" | b"iframe" | b"frame" | b"embed" | b"input" => Some((Kind::Embedded, "src")),
        b"body" | b"table" | b"td" => Some((Kind::Embedded, "background")),
        b"link" if is_of_the_page(attributes) => Some((Kind::Embedded, "href")),
        b"a" | b"area" => Some((Kind::Link, "href")),
        b"base" => Some((Kind::Base, "href")),
        _ => None,
    };
    if let Some((kind, attribute)) = wanted
        && let Some(value) = value_of(attributes, attribute)
        && let Ok(value) = std::str::from_utf8(value)
    {
        found(kind, value.replace("&amp;", "&").trim());
    }
    match &name[..] {
        b"script" => State::Raw(b"</script", 0),
        b"style" => State::Raw(b"</style", 0),
        _ => State::Text,
    }
}

/// Whether a `link` names what the page is shown with.
fn is_of_the_page(attributes: &[u8]) -> bool {
    let Some(relation) = value_of(attributes, "rel") else { return false };
    let words = [&b"stylesheet"[..], b"icon", b"preload", b"modulepreload"];
    relation.split(u8::is_ascii_whitespace).any(|word| words.iter().any(|one| word.eq_ignore_ascii_case(one)))
}

/// The value of the first attribute of this name.
fn value_of<'t>(mut text: &'t [u8], name: &str) -> Option<&'t [u8]> {
    loop {
        let begin = text.iter().position(|b| !b.is_ascii_whitespace() && *b != b'/')?;
        text = &text[begin..];
        let end = text.iter().position(|b| b.is_ascii_whitespace() || *b == b'=').unwrap_or(text.len());
        // An equals sign where a name should begin is a name of one byte.
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

    fn scan(page: &[u8], step: usize) -> Vec<(Kind, String)> {
        let (mut scanner, mut all) = (Scanner::default(), Vec::new());
        for piece in page.chunks(step.max(1)) {
            scanner.push(piece, |kind, url| all.push((kind, url.to_owned())));
        }
        all
    }

    fn embedded(page: &str) -> Vec<String> {
        let of_page = |(kind, url): (Kind, String)| (kind == Kind::Embedded).then_some(url);
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
            scan(PAGE.as_bytes(), 1000).into_iter().filter(|(k, _)| *k != Kind::Embedded).collect();
        assert_eq!(others, [(Kind::Base, "/dir/".into()), (Kind::Link, "f.html".into())]);
    }

    #[test]
    fn a_quote_that_does_not_end_swallows_no_more_than_a_tag() {
        let page = format!("<img src=\"a{}<img src=b>", "x".repeat(LONGEST_TAG));
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
