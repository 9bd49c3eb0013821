//! JSON lines: one object a line, whose keys say what their values are.
//!
//! The keys of the first lines are looked up once. Writers keep to their order, so that the next key is nearly always the one that
//! came after the last one before: most keys cost one comparison.

use super::detect::LATEST_US;
use super::field::{
    DurationUnit, Field, FieldSource, TimeOrigin, any_time, request_field, sent_response_field,
};
use super::time::{Clock, TimePattern, ticks_in_second};
use super::w3c;

/// Maximum nesting of objects.
const DEPTH: usize = 6;
/// The year 2000: an earlier time is a number of something else.
const EARLIEST_US: i64 = 946_684_800_000_000;

/// The keys of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Keys {
    list: Vec<Key>,
}

/// A key, and what its value is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Key {
    /// Names from the outermost object to the innermost, joined by points: `request.headers.User-Agent`.
    pub path: Box<str>,
    /// The same one by one: a name may have points in it (`{"http.request.method":"GET"}`).
    names: Vec<Box<str>>,
    pub field: Field,
}

/// A value in a line.
pub(super) struct JsonMember<'l> {
    /// Place of its key among the keys of the log.
    pub key: usize,
    /// A text without its quotes, a number, `true` or `false`; `null` is `-`.
    pub text: &'l [u8],
}

/// Position at which a line ceases to be a JSON object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NoObject {
    pub at: usize,
}

/// A log of a program that writes JSON by itself, known by some of its keys.
struct Writer {
    name: &'static str,
    about: &'static str,
    /// Keys that no other program has together.
    marks: &'static [&'static str],
    field: fn(&str) -> Option<Field>,
}

const WRITERS: [Writer; 10] = [
    Writer {
        name: "caddy",
        about: "what Caddy writes with `format json`",
        marks: &["ts", "request.uri", "request.method", "duration", "status"],
        field: caddy,
    },
    Writer {
        name: "traefik-json",
        about: "what Traefik writes with `format: json`",
        marks: &["RequestPath", "DownstreamStatus", "Duration"],
        field: traefik,
    },
    Writer {
        name: "envoy-json",
        about: "what Envoy writes with the keys that its documentation and Istio use",
        marks: &["start_time", "response_code", "bytes_sent"],
        field: envoy,
    },
    Writer {
        name: "cloudflare",
        about: "HTTP requests of Cloudflare's Logpush",
        marks: &["ClientRequestURI", "EdgeResponseStatus"],
        field: cloudflare,
    },
    Writer {
        name: "akamai",
        about: "Akamai's DataStream 2",
        marks: &["reqTimeSec", "reqPath", "statusCode"],
        field: akamai,
    },
    Writer {
        name: "cloudfront-json",
        about: "Amazon CloudFront's standard logs in JSON",
        marks: &["x-edge-location", "cs-uri-stem", "sc-status"],
        field: |path| match w3c::field(&path.to_ascii_lowercase(), w3c::Writer::CloudFront) {
            Field::Skip => None,
            field => Some(field),
        },
    },
    Writer {
        name: "google-cloud",
        about: "Google Cloud's load balancers and Cloud CDN",
        marks: &["httpRequest.requestUrl", "httpRequest.requestMethod"],
        field: google_cloud,
    },
    Writer {
        name: "azure",
        about: "Azure's Front Door and Application Gateway",
        marks: &["properties.requestUri", "properties.httpMethod"],
        field: azure,
    },
    Writer {
        name: "ecs",
        about: "the names of the Elastic Common Schema and of OpenTelemetry",
        marks: &["http.request.method", "http.response.status_code"],
        field: ecs,
    },
    // Every other, by what its keys are called.
    Writer { name: "json", about: "JSON lines, read by the names of their keys", marks: &[], field: by_name },
];

/// Format of JSON lines, found from the first of them.
#[derive(Debug)]
pub(super) struct JsonFormat {
    pub name: &'static str,
    pub about: &'static str,
    pub keys: Keys,
}

/// Finds out what the keys of some lines mean; none: these are no objects.
pub(super) fn find(lines: &[&[u8]]) -> Option<JsonFormat> {
    let mut paths: Vec<Vec<Box<str>>> = Vec::new();
    let mut read = 0;
    for line in lines {
        let mut own: Vec<Vec<Box<str>>> = Vec::new();
        let walked = each_leaf(line, |names, _, _| {
            own.push(names.iter().map(|name| String::from_utf8_lossy(name).into()).collect());
        });
        if walked.is_err() {
            continue;
        }
        read += 1;
        // A key that only some lines have comes behind the one that it follows in them.
        let mut index = 0;
        for path in own {
            match paths.iter().position(|known| *known == path) {
                Some(known) => index = known + 1,
                None => {
                    paths.insert(index, path);
                    index += 1;
                }
            }
        }
    }
    if read == 0 {
        return None;
    }
    let mut list: Vec<Key> = paths
        .into_iter()
        .map(|names| Key { path: names.join(".").into(), names, field: Field::Skip })
        .collect();
    let has = |mark: &&str| list.iter().any(|key| *key.path == **mark);
    let writer = WRITERS.iter().find(|writer| writer.marks.iter().all(has))?;
    for key in &mut list {
        key.field = (writer.field)(&key.path).unwrap_or(Field::Skip);
    }
    Some(JsonFormat { name: writer.name, about: writer.about, keys: Keys { list } })
}

impl Keys {
    pub(super) fn list(&self) -> &[Key] {
        &self.list
    }

    pub(super) fn list_mut(&mut self) -> &mut [Key] {
        &mut self.list
    }

    /// Skips keys whose values are not the times that their names say: `time` may be a duration where another key has the time, and
    /// between two times in whole seconds lies no response time. A day and a time of day may have a key each.
    pub(super) fn skip_other_times(&mut self, lines: &[&[u8]]) {
        let parts = ["%Y-%m-%d", "%H:%M:%S"].map(TimePattern::known);
        let mut are_times = vec![false; self.list.len()];
        let mut are_parts = parts.clone().map(|_| vec![false; self.list.len()]);
        for line in lines {
            // A line that is no object says nothing.
            let _ = self.each(line, |JsonMember { key, text }| {
                for (pattern, are_parts) in parts.iter().zip(&mut are_parts) {
                    let rest = pattern.read(text, &mut Clock::default());
                    are_parts[key] |= rest.is_some_and(<[u8]>::is_empty);
                }
                are_times[key] |= match &self.list[key].field {
                    Field::AnyTime(_, patterns) => is_recent(text, patterns.as_slice()),
                    Field::EndTime(_) => is_finer_than_second(text),
                    _ => false,
                };
                Some(())
            });
        }
        let is_known =
            self.list.iter().zip(&are_times).any(|(key, is)| *is && matches!(key.field, Field::AnyTime(..)));
        let part = |are_parts: &Vec<bool>| {
            let is_time = |key: &Key| matches!(key.field, Field::AnyTime(..));
            self.list.iter().zip(are_parts).position(|(key, is)| *is && is_time(key))
        };
        if !is_known && let [Some(day), Some(time)] = are_parts.each_ref().map(part) {
            for (key, pattern) in [day, time].into_iter().zip(parts) {
                self.list[key].field = Field::Time(pattern);
            }
            return;
        }
        for (key, is_time) in self.list.iter_mut().zip(are_times) {
            let is_other = match key.field {
                Field::AnyTime(..) => is_known && !is_time,
                Field::EndTime(_) => !is_time,
                _ => false,
            };
            if is_other {
                key.field = Field::Skip;
            }
        }
    }

    /// Hands over the values of a line whose keys are known, until one is refused.
    #[inline]
    pub(super) fn each<'l>(
        &self,
        line: &'l [u8],
        mut take: impl FnMut(JsonMember<'l>) -> Option<()>,
    ) -> Result<(), JsonStop> {
        let mut expected = 0;
        let mut refused = None;
        let walked = each_leaf(line, |names, text, at| {
            if refused.is_some() {
                return;
            }
            let is = |key: &Key| {
                key.names.len() == names.len()
                    && key.names.iter().zip(names).all(|(own, name)| own.as_bytes() == *name)
            };
            let key = match self.list.get(expected) {
                Some(key) if is(key) => Some(expected),
                _ => self.list.iter().position(is),
            };
            let Some(key) = key else { return };
            expected = key + 1;
            if take(JsonMember { key, text }).is_none() {
                refused = Some(JsonStop::Refused { key, at });
            }
        });
        match (refused, walked) {
            (Some(stop), _) => Err(stop),
            (None, Err(NoObject { at })) => Err(JsonStop::NoObject { at }),
            (None, Ok(())) => Ok(()),
        }
    }
}

/// Reason for which reading a line stopped early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JsonStop {
    NoObject { at: usize },
    Refused { key: usize, at: usize },
}

/// Hands over each value of an object that is no object itself: the names of its key, the value, and where it begins. Of a list it is
/// the first value.
fn each_leaf<'l>(line: &'l [u8], mut leaf: impl FnMut(&[&'l [u8]], &'l [u8], usize)) -> Result<(), NoObject> {
    let mut cursor = Cursor { line, at: 0 };
    let mut names: [&[u8]; DEPTH] = [b""; DEPTH];
    let mut depth = 0;
    cursor.expect(b'{')?;
    loop {
        // A key, or the end of an object that has none.
        if cursor.next_if(b'}') {
            if depth == 0 {
                break;
            }
            depth -= 1;
        } else {
            names[depth] = cursor.text()?;
            cursor.expect(b':')?;
            if cursor.next_if(b'{') {
                depth += 1;
                if depth == DEPTH {
                    return Err(NoObject { at: cursor.at });
                }
                continue;
            }
            let value = cursor.value()?;
            if let Some(value) = value {
                leaf(&names[..=depth], value.text, value.at);
            }
        }
        // What follows a value: another key, or the ends of objects.
        loop {
            if cursor.next_if(b',') {
                break;
            }
            cursor.expect(b'}')?;
            if depth == 0 {
                return cursor.end();
            }
            depth -= 1;
        }
    }
    cursor.end()
}

struct JsonLeaf<'l> {
    text: &'l [u8],
    at: usize,
}

struct Cursor<'l> {
    line: &'l [u8],
    at: usize,
}

impl<'l> Cursor<'l> {
    fn wrong<T>(&self) -> Result<T, NoObject> {
        Err(NoObject { at: self.at })
    }

    fn skip_blanks(&mut self) {
        while matches!(self.line.get(self.at), Some(b' ' | b'\t')) {
            self.at += 1;
        }
    }

    /// Takes a byte, if that comes next.
    fn next_if(&mut self, byte: u8) -> bool {
        self.skip_blanks();
        let is_next = self.line.get(self.at) == Some(&byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn expect(&mut self, byte: u8) -> Result<(), NoObject> {
        if self.next_if(byte) { Ok(()) } else { self.wrong() }
    }

    /// A text in quotes, as it stands there.
    fn text(&mut self) -> Result<&'l [u8], NoObject> {
        self.expect(b'"')?;
        let begin = self.at;
        loop {
            let Some(found) = memchr::memchr2(b'"', b'\\', &self.line[self.at..]) else {
                return self.wrong();
            };
            self.at += found;
            if self.line[self.at] == b'"' {
                self.at += 1;
                return Ok(&self.line[begin..self.at - 1]);
            }
            if self.at + 2 > self.line.len() {
                return self.wrong();
            }
            self.at += 2;
        }
    }

    /// A value that is no object; none: an empty list, or one of objects.
    fn value(&mut self) -> Result<Option<JsonLeaf<'l>>, NoObject> {
        self.skip_blanks();
        match self.line.get(self.at) {
            Some(b'"') => {
                let at = self.at + 1;
                Ok(Some(JsonLeaf { text: self.text()?, at }))
            }
            Some(b'[') => self.list(),
            Some(_) => {
                let begin = self.at;
                let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
                self.at += self.line[begin..].iter().take_while(|byte| is_part(byte)).count();
                let text = &self.line[begin..self.at];
                match text {
                    b"" => self.wrong(),
                    b"null" => Ok(Some(JsonLeaf { text: b"-", at: begin })),
                    text => Ok(Some(JsonLeaf { text, at: begin })),
                }
            }
            None => self.wrong(),
        }
    }

    /// The first value of a list, all of which is skipped.
    fn list(&mut self) -> Result<Option<JsonLeaf<'l>>, NoObject> {
        self.expect(b'[')?;
        self.skip_blanks();
        let first = match self.line.get(self.at) {
            Some(b'[' | b'{' | b']') | None => None,
            Some(_) => self.value()?,
        };
        let mut open = 1;
        while open > 0 {
            let Some(byte) = self.line.get(self.at) else { return self.wrong() };
            match byte {
                b'"' => {
                    self.text()?;
                    continue;
                }
                b'[' | b'{' => open += 1,
                b']' | b'}' => open -= 1,
                _ => {}
            }
            self.at += 1;
        }
        Ok(first)
    }

    fn end(&mut self) -> Result<(), NoObject> {
        self.skip_blanks();
        if self.at == self.line.len() { Ok(()) } else { self.wrong() }
    }
}

/// True for a time that a log may have.
fn is_recent(text: &[u8], patterns: &[TimePattern]) -> bool {
    let time_us = any_time(text, patterns).and_then(|clock| clock.unix_us());
    time_us.is_some_and(|time_us| (EARLIEST_US..LATEST_US).contains(&time_us))
}

/// True for a time with a part of a second.
fn is_finer_than_second(text: &[u8]) -> bool {
    let is_number = text.iter().all(u8::is_ascii_digit);
    text.contains(&b'.') || (is_number && ticks_in_second(text.len()).is_some_and(|ticks| ticks > 1))
}

fn time(origin: TimeOrigin) -> Field {
    Field::AnyTime(origin, Box::new(TimePattern::from_json_lines()))
}

fn caddy(path: &str) -> Option<Field> {
    if let Some(name) = path.strip_prefix("request.headers.") {
        return Some(request_field(&name.to_ascii_lowercase()));
    }
    if let Some(name) = path.strip_prefix("resp_headers.") {
        return sent_response_field(&name.to_ascii_lowercase());
    }
    Some(match path {
        "ts" => time(TimeOrigin::Proxy),
        "duration" => Field::Duration(DurationUnit::Second),
        "size" => Field::LineLayout,
        "status" => Field::Status,
        // Behind trusted proxies it is the client's own, and the other that of the connection.
        "request.client_ip" => Field::Client(FieldSource::Direct),
        "request.remote_ip" | "request.remote_addr" => Field::Client(FieldSource::Indirect),
        "request.proto" => Field::Version,
        "request.method" => Field::Method,
        "request.host" => Field::Host(FieldSource::Direct),
        "request.uri" => Field::Url,
        _ => return None,
    })
}

fn traefik(path: &str) -> Option<Field> {
    if let Some(name) = path.strip_prefix("request_") {
        return Some(request_field(&name.to_ascii_lowercase()));
    }
    if let Some(name) = path.strip_prefix("downstream_") {
        return sent_response_field(&name.to_ascii_lowercase());
    }
    Some(match path {
        "StartUTC" => time(TimeOrigin::Proxy),
        "Duration" => Field::Duration(DurationUnit::Nanosecond),
        "ClientHost" => Field::Client(FieldSource::Direct),
        "ClientAddr" => Field::Client(FieldSource::Indirect),
        "DownstreamStatus" => Field::Status,
        "DownstreamContentSize" => Field::LineLayout,
        "RequestMethod" => Field::Method,
        "RequestPath" => Field::Url,
        "RequestAddr" => Field::Host(FieldSource::Direct),
        "RequestHost" => Field::Host(FieldSource::Indirect),
        "RequestProtocol" => Field::Version,
        "RequestScheme" => Field::Scheme,
        "ServiceAddr" => Field::Peer,
        _ => return None,
    })
}

fn envoy(path: &str) -> Option<Field> {
    Some(match path {
        "start_time" => time(TimeOrigin::Proxy),
        "duration" => Field::Duration(DurationUnit::Millisecond),
        "response_code" => Field::Status,
        "bytes_sent" => Field::LineLayout,
        "method" => Field::Method,
        "path" => Field::Url,
        "protocol" => Field::Version,
        "authority" => Field::Host(FieldSource::Direct),
        "user_agent" | "user-agent" => Field::Agent,
        "referer" => Field::Referrer,
        "upstream_host" => Field::Peer,
        "downstream_remote_address" => Field::Client(FieldSource::Direct),
        "x_forwarded_for" => Field::Client(FieldSource::Indirect),
        _ => return None,
    })
}

fn cloudflare(path: &str) -> Option<Field> {
    Some(match path {
        "EdgeStartTimestamp" => time(TimeOrigin::Proxy),
        "ClientIP" => Field::Client(FieldSource::Direct),
        "ClientRequestHost" => Field::Host(FieldSource::Direct),
        "ClientRequestMethod" => Field::Method,
        "ClientRequestURI" => Field::Url,
        "ClientRequestProtocol" => Field::Version,
        "ClientRequestScheme" => Field::Scheme,
        "ClientRequestUserAgent" => Field::Agent,
        "ClientRequestReferer" => Field::Referrer,
        "CacheCacheStatus" => Field::Outcome(FieldSource::Direct),
        "EdgeResponseBytes" => Field::Bytes,
        "EdgeResponseStatus" => Field::Status,
        "EdgeResponseContentType" => Field::ContentType,
        "EdgeEndTimestamp" => Field::EndTime(Box::new(TimePattern::from_json_lines())),
        "OriginIP" => Field::Peer,
        _ => return None,
    })
}

fn akamai(path: &str) -> Option<Field> {
    Some(match path {
        "reqTimeSec" => time(TimeOrigin::Proxy),
        "cliIP" => Field::Client(FieldSource::Direct),
        "reqHost" => Field::Host(FieldSource::Direct),
        "reqMethod" => Field::Method,
        "reqPath" => Field::RootlessPath,
        "queryStr" => Field::Query,
        "proto" => Field::Scheme,
        "statusCode" => Field::Status,
        // `rspContentLen` is what the response announced.
        "bytes" => Field::LineLayout,
        "totalBytes" => Field::Bytes,
        "rspContentType" => Field::ContentType,
        "cacheStatus" => Field::HitFlag,
        "UA" => Field::Agent,
        "referer" => Field::Referrer,
        "xForwardedFor" => Field::Client(FieldSource::Indirect),
        _ => return None,
    })
}

/// An entry of a log of requests (`LogEntry`), which leaves out what is false.
fn google_cloud(path: &str) -> Option<Field> {
    Some(match path {
        "timestamp" => time(TimeOrigin::Proxy),
        "httpRequest.requestMethod" => Field::Method,
        "httpRequest.requestUrl" => Field::Url,
        "httpRequest.status" => Field::Status,
        "httpRequest.responseSize" => Field::Bytes,
        "httpRequest.userAgent" => Field::Agent,
        "httpRequest.remoteIp" => Field::Client(FieldSource::Direct),
        "httpRequest.referer" => Field::Referrer,
        "httpRequest.protocol" => Field::Version,
        "httpRequest.latency" => Field::Duration(DurationUnit::Second),
        "httpRequest.cacheHit" => Field::HitFlag,
        "httpRequest.cacheLookup" => Field::CacheLookup,
        _ => return None,
    })
}

fn azure(path: &str) -> Option<Field> {
    Some(match path {
        "time" | "timeStamp" => time(TimeOrigin::Proxy),
        "properties.httpMethod" => Field::Method,
        "properties.requestUri" => Field::Url,
        "properties.requestQuery" => Field::Query,
        "properties.httpStatusCode" | "properties.httpStatus" => Field::Status,
        "properties.responseBytes" | "properties.sentBytes" => Field::Bytes,
        "properties.clientIp" | "properties.clientIP" => Field::Client(FieldSource::Direct),
        "properties.hostName" | "properties.originalHost" => Field::Host(FieldSource::Direct),
        "properties.host" => Field::Host(FieldSource::Indirect),
        "properties.userAgent" => Field::Agent,
        "properties.referer" | "properties.referrer" => Field::Referrer,
        "properties.httpVersion" => Field::Version,
        "properties.timeTaken" => Field::Duration(DurationUnit::Second),
        "properties.cacheStatus" => Field::Outcome(FieldSource::Direct),
        _ => return None,
    })
}

fn ecs(path: &str) -> Option<Field> {
    Some(match path {
        "@timestamp" => time(TimeOrigin::Shipper),
        "timestamp" => time(TimeOrigin::Unknown),
        "event.start" => time(TimeOrigin::Proxy),
        "event.duration" => Field::Duration(DurationUnit::Nanosecond),
        "http.request.method" => Field::Method,
        "http.request.referrer" => Field::Referrer,
        "http.response.status_code" => Field::Status,
        "http.response.body.bytes" | "http.response.body.size" => Field::LineLayout,
        "http.response.bytes" | "http.response.size" => Field::Bytes,
        "http.response.mime_type" => Field::ContentType,
        "http.version" | "network.protocol.version" => Field::Version,
        "url.original" | "url.full" => Field::Url,
        "url.path" => Field::Path,
        "url.query" => Field::Query,
        "url.domain" | "server.address" => Field::Host(FieldSource::Direct),
        "url.scheme" => Field::Scheme,
        "client.ip" | "client.address" | "source.ip" | "source.address" => Field::Client(FieldSource::Direct),
        "user_agent.original" => Field::Agent,
        _ => return None,
    })
}

/// The field of a key by its name: one of nginx's variables, or a name that people use for the same. A duration is read where its name
/// says the unit. In an object within another, a key is read where that object is what it belongs to: `response.bytes` is the size of a
/// response, `request.bytes` is not.
fn by_name(path: &str) -> Option<Field> {
    let Some((before, last)) = path.rsplit_once('.') else { return by_last_name(path) };
    let field = by_last_name(last)?;
    let parent = before.rsplit('.').next().unwrap_or(before).to_ascii_lowercase();
    let is_of_response = matches!(
        field,
        Field::Status
            | Field::Bytes
            | Field::LineLayout
            | Field::ContentType
            | Field::Outcome(_)
            | Field::HitFlag
            | Field::Duration(_)
    );
    let belongs = match parent.as_str() {
        "http" | "access" | "nginx" | "log" | "event" => true,
        "response" | "resp" | "res" => is_of_response,
        "request" | "req" => !is_of_response,
        _ => false,
    };
    belongs.then_some(field)
}

fn by_last_name(last: &str) -> Option<Field> {
    if last == "@timestamp" {
        return Some(time(TimeOrigin::Shipper));
    }
    let name = last.trim_start_matches('@').to_ascii_lowercase().replace('-', "_");
    let known = match name.as_str() {
        "timestamp" | "date" | "datetime" => time(TimeOrigin::Unknown),
        "time" | "ts" | "time_local" | "time_iso8601" | "msec" | "start_time" | "request_timestamp"
        | "unix_time" | "time_unix" => time(TimeOrigin::Proxy),
        "request" | "request_line" => Field::RequestLine,
        "method" | "verb" | "http_method" | "request_method" => Field::Method,
        "url" | "uri" | "request_url" | "request_uri" | "full_url" => Field::Url,
        "path" | "request_path" | "uri_path" | "url_path" => Field::Path,
        "query" | "query_string" | "uri_query" | "url_query" | "args" => Field::Query,
        "status" | "status_code" | "response_status" | "response_code" | "http_status" | "statuscode" => {
            Field::Status
        }
        "body_bytes_sent" | "response_body_size" | "body_size" | "resp_body_size" => Field::LineLayout,
        "bytes" | "bytes_sent" | "size" | "response_size" | "response_bytes" | "bytes_out" | "resp_bytes" => {
            Field::Bytes
        }
        "client" | "client_ip" | "clientip" | "remote_ip" | "remote_addr" | "remote_host" | "client_addr"
        | "client_address" | "remote_address" => Field::Client(FieldSource::Direct),
        "xff" | "x_forwarded_for" | "http_x_forwarded_for" | "forwarded_for" => {
            Field::Client(FieldSource::Indirect)
        }
        "upstream_cache_status"
        | "cache_status"
        | "cache"
        | "cache_result"
        | "response_state"
        | "fastly_state"
        | "cachestatus" => Field::Outcome(FieldSource::Direct),
        "x_cache" | "sent_http_x_cache" | "resp_x_cache" => Field::Outcome(FieldSource::Indirect),
        "cache_hit" | "cachehit" | "is_hit" | "ishit" | "hit" | "cached" | "is_cached" | "from_cache" => {
            Field::HitFlag
        }
        "user_agent" | "useragent" | "ua" | "request_user_agent" => Field::Agent,
        "referer" | "referrer" | "request_referer" | "http_referrer" => Field::Referrer,
        "request_host" | "vhost" | "authority" | "domain" => Field::Host(FieldSource::Direct),
        // Shippers name their own machine so.
        "host" => Field::Host(FieldSource::Indirect),
        "scheme" | "request_scheme" => Field::Scheme,
        "protocol" | "proto" | "request_protocol" | "http_version" | "server_protocol" => Field::Version,
        "content_type" | "response_content_type" | "mime_type" => Field::ContentType,
        "request_time" => Field::Duration(DurationUnit::Second),
        name => {
            let unit = [
                ("_ns", DurationUnit::Nanosecond),
                ("_us", DurationUnit::Microsecond),
                ("_usec", DurationUnit::Microsecond),
                ("_ms", DurationUnit::Millisecond),
                ("_msec", DurationUnit::Millisecond),
                ("_s", DurationUnit::Second),
                ("_sec", DurationUnit::Second),
                ("_seconds", DurationUnit::Second),
            ];
            let unit = unit.iter().find_map(|(end, unit)| Some((name.strip_suffix(*end)?, *unit)));
            match unit {
                Some((
                    "duration" | "elapsed" | "time" | "time_taken" | "took" | "latency" | "response_time"
                    | "request_time" | "time_elapsed" | "total_time" | "request_duration",
                    unit,
                )) => Field::Duration(unit),
                _ => return super::nginx::variable(last),
            }
        }
    };
    Some(known)
}

/// A format string in nginx's words for the keys of a line, to be corrected by hand; none: it is no object, or one with others in it.
pub(super) fn template(line: &[u8]) -> Option<String> {
    let mut keys = Vec::new();
    let mut is_flat = true;
    each_leaf(line, |names, _, at| {
        is_flat &= names.len() == 1;
        let name = String::from_utf8_lossy(names[0]).into_owned();
        let variable: String =
            name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        let quote = if line[at - 1] == b'"' { "\"" } else { "" };
        keys.push(format!("\"{name}\":{quote}${variable}{quote}"));
    })
    .ok()?;
    is_flat.then(|| format!("{{{}}}", keys.join(",")))
}
