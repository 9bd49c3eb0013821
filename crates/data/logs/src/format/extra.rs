//! What lines say beside what an [`Access`](crate::access::Access) holds: fields and cookies of requests, and what responses say of their
//! variants. A format names them once; a line is read a second time where somebody needs them.

use super::field::Field;

/// Content of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExtraField<'f> {
    /// A header field of the request; its name in lower case.
    Request(&'f str),
    /// The value of the request's cookie with this name.
    Cookie(&'f str),
    /// `Vary` of the response.
    Vary,
    /// `ETag` or `Last-Modified` of the response.
    Validator,
}

impl Field {
    /// The field as an extra one, if it is of this kind.
    pub(super) fn extra(&self) -> Option<ExtraField<'_>> {
        Some(match self {
            Field::Agent => ExtraField::Request("user-agent"),
            Field::Referrer => ExtraField::Request("referer"),
            Field::Request(name) => ExtraField::Request(name),
            Field::Cookie(name) => ExtraField::Cookie(name),
            Field::Vary => ExtraField::Vary,
            Field::Validator => ExtraField::Validator,
            _ => return None,
        })
    }
}

/// Notation by which each proxy logs a header field of requests, for a message.
pub fn logging_hint(name: &str) -> String {
    let written = canonical_field_name(name);
    format!(
        "nginx \"$http_{}\", httpd and varnishncsa \"%{{{written}}}i\", Squid \"%{{{written}}}>h\", Traffic Server \
         \"%<{{{written}}}cqh>\"",
        name.to_ascii_lowercase().replace('-', "_")
    )
}

/// The name of a header field as it is usually written: `Accept-Language`.
pub fn canonical_field_name(name: &str) -> String {
    let parts = name.split('-').map(|part| match part.split_at_checked(1) {
        Some((first, rest)) => first.to_ascii_uppercase() + &rest.to_ascii_lowercase(),
        None => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Format;

    fn said(format: &str, line: &str) -> Vec<(String, String)> {
        let format = Format::parse(format).unwrap();
        let mut said = Vec::new();
        format.each_extra(line.as_bytes(), |extra, value| {
            said.push((format!("{extra:?}"), String::from_utf8_lossy(value).into_owned()));
        });
        said
    }

    #[test]
    fn fields_and_cookies_of_requests_are_found_in_the_notation_of_every_proxy() {
        let (field, cookie) = ("Request(\"accept-language\")", "Cookie(\"sid\")");
        let line = "1 200 /a \"en, de\" \"7\" \"Accept-Language\" \"x1\"";
        for format in [
            "$msec $status $request_uri \"$http_accept_language\" \"$cookie_sid\" \"$sent_http_vary\" \"$upstream_http_etag\"",
            "%{sec}t %>s %U \"%{Accept-Language}i\" \"%{sid}C\" \"%{Vary}o\" \"%{ETag}o\"",
            "%ts %>Hs %ru \"%{Accept-Language}>h\" \"%{Cookie:;sid}>h\" \"%{Vary}<h\" \"%{ETag}<h\"",
        ] {
            let said = said(format, line);
            let said: Vec<_> = said.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            let vary = ("Vary", "Accept-Language");
            assert_eq!(said, [(field, "en, de"), (cookie, "7"), vary, ("Validator", "x1")], "{format}");
        }
        let line = "1 200 http://h/a \"en\" \"sid=7\" \"Cookie\"";
        let cookie = "Request(\"cookie\")";
        for format in [
            "%<cqtq> %<pssc> %<cquc> \"%<{Accept-Language}cqh>\" \"%<{Cookie}cqh>\" \"%<{Vary}psh>\"",
            "%Ts %ST %HU %{+Q}[var(txn.accept_language)] %{+Q}[var(txn.cookie)] %{+Q}[var(txn.vary)]",
        ] {
            let said = said(format, line);
            assert_eq!(said.len(), 3, "{format}: {said:?}");
            assert_eq!((said[0].0.as_str(), said[1].0.as_str()), (field, cookie), "{format}");
        }
    }

    #[test]
    fn a_log_that_names_its_fields_says_cookies_and_what_is_not_logged_is_not_said() {
        let format = "#Fields: date time cs-uri-stem cs(Cookie) cs(Accept-Language) cs(User-Agent)";
        let line = "2025-10-10 13:55:36 /a sid=7;+lang=en - \"an agent\"";
        let said = said(format, line);
        let said: Vec<_> = said.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let cookie = ("Request(\"cookie\")", "sid=7;+lang=en");
        assert_eq!(said, [cookie, ("Request(\"user-agent\")", "an agent")]);
        let format = Format::parse("squid").unwrap();
        assert_eq!(format.extras().count(), 0);
    }

    #[test]
    fn what_is_recommended_is_understood() {
        let text = logging_hint("accept-language");
        let formats: Vec<&str> = text.split('"').skip(1).step_by(2).collect();
        assert_eq!(formats.len(), 4, "{text}");
        for format in formats {
            let format = Format::parse(format).unwrap();
            assert_eq!(format.extras().collect::<Vec<_>>(), [ExtraField::Request("accept-language")]);
        }
    }
}
