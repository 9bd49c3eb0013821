//! One field for each quantity. Where several fields of a format say the same, the most direct and finest of them is read, and the
//! others are only cut out: the choice is made once, for all lines.

use super::field::{Field, FieldSource};
use super::token::Token;

/// A field that is not read because another one says the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnusedField {
    /// The field, as the format writes it.
    pub word: String,
    pub what: &'static str,
    /// The field that is read in its place.
    pub used: String,
}

/// Turns fields that another one makes superfluous into such that are only cut out.
pub(super) fn drop_redundant(tokens: &mut [Token]) -> Vec<UnusedField> {
    let fields: Vec<Option<Field>> = tokens.iter().map(|piece| piece.as_field().cloned()).collect();
    let mut unused = Vec::new();
    for (index, field) in fields.iter().enumerate() {
        let Some(field) = field else { continue };
        let mut read = index;
        while let Some(better) = better_than(read, &fields) {
            read = better;
        }
        if read == index {
            continue;
        }
        let used = tokens[read].text().to_owned();
        if let Token::Field { field: own, word, .. } = &mut tokens[index] {
            unused.push(UnusedField { word: word.clone(), what: field.name(), used });
            *own = match field {
                Field::Time(pattern) => Field::UnusedTime(pattern.clone()),
                Field::PeerList => Field::SkipList,
                _ => Field::Skip,
            };
        }
    }
    unused
}

/// Index of a field that states the same quantity better, or equally well and earlier in the line.
fn better_than(index: usize, fields: &[Option<Field>]) -> Option<usize> {
    let field = fields[index].as_ref()?;
    fields.iter().enumerate().position(|(at, other)| {
        other.as_ref().is_some_and(|other| {
            let is_earlier = at < index && is_equal(other, field);
            at != index && (is_better(other, field) || is_earlier)
        })
    })
}

/// True for a field that says all that another one says, more directly, more finely, or together with what belongs to it.
fn is_better(field: &Field, than: &Field) -> bool {
    let is_epoch = matches!(field, Field::EpochSeconds | Field::EpochMillis | Field::EpochMicros);
    match (than, field) {
        (Field::Time(_), _) if is_epoch => true,
        // A day and a time of day complete each other.
        (Field::Time(than), Field::Time(pattern)) => {
            pattern.is_whole() && (!than.is_whole() || (pattern.has_fraction() && !than.has_fraction()))
        }
        (Field::AnyTime(than, _), Field::AnyTime(origin, _)) => origin > than,
        (Field::EpochSeconds, Field::EpochMillis | Field::EpochMicros) => true,
        (Field::EpochMillis, Field::EpochMicros) => true,
        (Field::Fraction, Field::EpochMillis | Field::EpochMicros) => true,
        (Field::Duration(than), Field::Duration(unit)) => unit > than,
        (Field::Client(FieldSource::Indirect), Field::Client(FieldSource::Direct) | Field::ClientAndPort) => {
            true
        }
        (Field::Outcome(FieldSource::Indirect) | Field::HitFlag, Field::Outcome(FieldSource::Direct)) => true,
        (Field::Outcome(FieldSource::Indirect), Field::HitFlag) => true,
        (Field::Server, Field::Outcome(_)) => true,
        (Field::Host(FieldSource::Indirect), Field::Host(FieldSource::Direct)) => true,
        // What a cache keeps is the body.
        (Field::Bytes, Field::LineLayout) => true,
        (Field::Path, Field::Url | Field::HostPath | Field::RequestLine) => true,
        (Field::HostPath, Field::Url) => true,
        (Field::Query, Field::RequestLine) => true,
        _ => false,
    }
}

/// True for fields of which one is enough.
fn is_equal(field: &Field, other: &Field) -> bool {
    match (field, other) {
        (Field::Skip | Field::Rest | Field::SkipList | Field::Braces | Field::UnusedTime(_), _) => false,
        (Field::Request(_) | Field::Cookie(_) | Field::Vary | Field::Validator, _) => false,
        (Field::DurationPart(_), _) => false,
        (Field::Time(pattern), Field::Time(other)) => {
            pattern.has_date() == other.has_date() && pattern.has_time_of_day() == other.has_time_of_day()
        }
        (Field::Client(FieldSource::Direct), Field::ClientAndPort) => true,
        (Field::ClientAndPort, Field::Client(FieldSource::Direct)) => true,
        (Field::Peer, Field::PeerList) | (Field::PeerList, Field::Peer) => true,
        _ => field == other,
    }
}

#[cfg(test)]
mod tests {
    use crate::access::Access;
    use crate::format::{Format, read_line};

    /// What is read of a line, and which fields of its format are not used.
    fn read(format: &str, line: &str) -> String {
        let format = Format::parse(format).unwrap();
        let mut access = Access::default();
        read_line(&format, line.as_bytes(), &mut access).map_err(|wrong| format.explain(&wrong)).expect(line);
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        let unused: Vec<&str> = format.unused().iter().map(|unused| unused.word.as_str()).collect();
        format!(
            "{:?} {:?} {} {} {} {} {}{} | {}",
            access.time_us,
            access.duration_us,
            text(access.client),
            access.bytes,
            text(access.method),
            text(access.host),
            text(access.url),
            text(access.query),
            unused.join(" ")
        )
    }

    #[test]
    fn the_address_of_the_client_is_read_before_the_one_that_was_forwarded_in_every_order() {
        for (format, line, expected) in [
            ("$remote_addr|$status|$http_x_forwarded_for", "192.0.2.1|200|-", "192.0.2.1"),
            (
                "$http_x_forwarded_for|$status|$remote_addr",
                "203.0.113.1, 10.0.0.1|200|192.0.2.1",
                "192.0.2.1",
            ),
            ("%h|%>s|%{X-Forwarded-For}i", "192.0.2.1|200|203.0.113.1", "192.0.2.1"),
            ("%{X-Forwarded-For}i|%>s", "203.0.113.1, 10.0.0.1|200", "203.0.113.1"),
        ] {
            assert!(read(format, line).starts_with(&format!("None None {expected} ")), "{format}");
        }
    }

    #[test]
    fn the_finest_duration_is_read_in_every_order() {
        for (format, line) in [
            ("%D %T %>s", "550000 0 200"),
            ("%T %D %>s", "0 550000 200"),
            ("%T %{ms}T %>s", "0 550 200"),
            ("%<tts> %<ttmsf> %<pssc>", "0 0.550 200"),
            ("%<ttmsf> %<tts> %<pssc>", "0.550 0 200"),
        ] {
            assert!(read(format, line).starts_with("None Some(550000)"), "{format}");
        }
    }

    #[test]
    fn bodies_are_read_before_bytes_with_heads_in_every_order() {
        for (format, line) in [
            ("$status $body_bytes_sent $bytes_sent", "200 10 310"),
            ("$status $bytes_sent $body_bytes_sent", "200 310 10"),
        ] {
            assert_eq!(read(format, line), "None None  10    | $bytes_sent");
        }
    }

    #[test]
    fn a_time_is_read_once_and_its_parts_together() {
        let second = "Some(971211336000000)";
        for (format, line, expected) in [
            (
                "[$time_local] $msec $status",
                "[10/Oct/2000:13:55:36 -0700] 971211336.250 200",
                "Some(971211336250000)",
            ),
            (
                "$msec [$time_local] $status",
                "971211336.250 [10/Oct/2000:13:55:36 -0700] 200",
                "Some(971211336250000)",
            ),
            (
                "$time_iso8601 [$time_local] $status",
                "2000-10-10T20:55:36Z [10/Oct/2000:13:55:36 -0700] 200",
                second,
            ),
            ("%{%F}t %{%T}t %>s", "2000-10-10 20:55:36 200", second),
            ("%{%T}t %{%F}t %t %>s", "20:55:36 2000-10-10 [10/Oct/2000:13:55:36 -0700] 200", second),
            ("%{sec}t.%{usec_frac}t %t %>s", "971211336.000000 [10/Oct/2000:13:55:36 -0700] 200", second),
        ] {
            assert!(read(format, line).starts_with(expected), "{format}: {}", read(format, line));
        }
    }

    #[test]
    fn an_url_is_read_once_with_the_query_that_belongs_to_it() {
        let line = "GET /a?x=1 HTTP/1.1";
        for (format, line, expected) in [
            ("\"$request\" $uri $args $status", format!("\"{line}\" /a x=1 200"), "GET  /a?x=1 | $uri $args"),
            ("$uri $args \"$request\" $status", format!("/a x=1 \"{line}\" 200"), "GET  /a?x=1 | $uri $args"),
            ("$uri $args $request_uri $status", "/a x=1 /a?x=1 200".into(), "  /a?x=1 | $uri"),
            ("$uri $args $status", "/a x=1 200".into(), "  /ax=1 | "),
            ("$host$request_uri \"$request\" $status", format!("h/a?x=1 \"{line}\" 200"), "GET h /a?x=1 | "),
            ("$server_name $http_host $uri $status", "default h /a 200".into(), "  h /a | $server_name"),
        ] {
            let read = read(format, &line);
            assert!(read.ends_with(expected), "{format}: {read}");
        }
    }
}
