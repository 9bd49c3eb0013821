//! The field that identifies requests and responses (`X-Assay`).
//!
//! One field each way, decimal numbers joined by `-`. Robots put a [`RequestMark`] into each request; origins put a
//! [`ResponseMark`] into each response, and from it a robot tells how the response came about. Written into a buffer that
//! the caller keeps, parsed in place: nothing is allocated per xact.
//!
//! # Contract
//!
//! One header field each, named `X-Assay`, decimal fields joined by `-`:
//!
//! - request: `<robot>-<number>-<place>-<phase>-<kind>`; kind is `b` for a basic GET, `c` for a request that the robot itself
//!   made conditional, `r` for a reload, `o` for others (HEAD, POST, PUT, ranges). When the robot sends a request of the xact
//!   again (on a new connection, after a redirection or a challenge), the number of attempts before it follows: `o1`.
//! - response: `<robot>-<number>-<place>-<key, 16 hex>-<version>-<made>-<status>`: the request that caused it, the object, its
//!   version, when the origin made it (microseconds since the start of the run, `CLOCK_MONOTONIC`), and the status the origin gave. Three
//!   fields may follow: `h<microseconds>`, how long the origin had the request before it made the response (from 1 ms on); `d<microseconds>`,
//!   by how much the origin itself was late with the response; and one of `a<bytes>`: the origin will cut off the body after this number of
//!   bytes; `f`: this is an injected fault.
//!
//! The response to a request without the field (a fetch that a proxy makes on its own, or one whose field it dropped) names
//! no robot: robot 4294967295, number and place 0. No robot has that number. Behind a proxy that drops the field from
//! every request, joined fetches cannot be distinguished from misses, nor validations from either.
//!
//! The robot determines the outcome from this field:
//!
//! | response names | made | outcome |
//! |---|---|---|
//! | this request, `200` (or the robot's request was conditional) | | miss |
//! | this request, `304`, while the robot's request was not conditional | | revalidated |
//! | another request, or no robot | before this one was sent | hit |
//! | another request | after this one was sent | collapsed |
//! | no robot | after this one was sent | miss |
//!
//! A proxy that does not update stored headers from a 304 (`validation_updates` false, as declared) shows a hit there, and the
//! response may look expired although it was validated. It is *stale* only if the object has been modified by the time of sending,
//! and a validation in the last second of the served version would have expired too, or if the target validated nothing in the whole run
//! (`RobotCounts::unconfirmed_hits`). For all other proxies a hit is stale more than one second
//! after the `Expires` with which the response was made. A validation that looks like a hit is still detected: the origin counts such
//! validations (`OriginCounts::validated_basic`) and the summary moves them from hits to revalidated.

use crate::path::hex_digits;
use crate::xact::XactId;
use assay_http::field::write_decimal;

/// Name of the header field.
pub const HEADER: &str = "X-Assay";

/// Class of a request, as far as an origin has to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RequestKind {
    /// A basic GET: a condition on it is the proxy's own.
    Basic,
    /// The robot itself made it conditional.
    Conditional,
    Reload,
    /// HEAD, POST, PUT, ranges.
    Other,
}

/// Field of a request: `<robot>-<number>-<place>-<phase>-<kind>`, and the attempt if it is not the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestMark {
    pub xact: XactId,
    /// Index of the phase it was due in.
    pub phase: u16,
    pub kind: RequestKind,
    /// Requests of the xact that the robot sent before this one.
    pub attempt: u16,
}

/// Field of a response: `<robot>-<number>-<place>-<key>-<version>-<made>-<status>`, and sometimes `-h<held>`, `-d<delay>`
/// and `-<note>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResponseMark {
    /// The xact that the origin responded to; [`XactId::NOBODY`] when the request named none.
    pub xact: XactId,
    /// Key of the object.
    pub key: u64,
    /// Version of the object.
    pub version: u64,
    /// Time at which the origin made the response: microseconds since the start of the run, `CLOCK_MONOTONIC`.
    pub made_us: u64,
    /// The status that the origin gave.
    pub status: u16,
    /// `h<microseconds>`: how long the origin had the whole request before it made the response. 0 is not written.
    pub held_us: u32,
    /// `d<microseconds>`: by how much the origin itself was late with it, beside what it was to take. 0 is not written.
    pub delay_us: u32,
    /// Announcement of a deliberate error in the response.
    pub note: Option<ResponseNote>,
}

/// Announcement by an origin that a response is deliberately wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseNote {
    /// `a<bytes>`: it will break off after so many bytes of the body.
    BreaksOff(u64),
    /// `f`: this is a fault on purpose.
    Fault,
}

impl RequestMark {
    /// Appends the field's value.
    pub fn write(&self, out: &mut Vec<u8>) {
        write_xact(out, self.xact);
        write_decimal(out, u64::from(self.phase));
        out.push(b'-');
        out.push(match self.kind {
            RequestKind::Basic => b'b',
            RequestKind::Conditional => b'c',
            RequestKind::Reload => b'r',
            RequestKind::Other => b'o',
        });
        if self.attempt > 0 {
            write_decimal(out, u64::from(self.attempt));
        }
    }

    /// Reads the field's value; none when it is not ours.
    pub fn parse(value: &[u8]) -> Option<Self> {
        let mut parts = FieldParts { rest: Some(value) };
        let xact = parts.xact()?;
        let phase = u16::try_from(parts.decimal()?).ok()?;
        let (kind, attempt) = parts.last()?.split_first()?;
        let kind = match kind {
            b'b' => RequestKind::Basic,
            b'c' => RequestKind::Conditional,
            b'r' => RequestKind::Reload,
            b'o' => RequestKind::Other,
            _ => return None,
        };
        let attempt = match attempt {
            [] => 0,
            digits => u16::try_from(assay_http::field::decimal(digits)?).ok()?,
        };
        Some(Self { xact, phase, kind, attempt })
    }
}

impl ResponseMark {
    /// True for a 304 response of the origin.
    #[inline]
    pub fn not_modified(&self) -> bool {
        self.status == 304
    }

    /// True for an object, a part of it, or its confirmation; false for what an origin sends in place of one.
    #[inline]
    pub fn is_of_object(&self) -> bool {
        matches!(self.status, 200 | 206 | 304)
    }

    /// Appends the field's value.
    pub fn write(&self, out: &mut Vec<u8>) {
        write_xact(out, self.xact);
        out.extend_from_slice(&hex_digits(self.key));
        out.push(b'-');
        write_decimal(out, self.version);
        out.push(b'-');
        write_decimal(out, self.made_us);
        match self.status {
            200 => out.extend_from_slice(b"-200"),
            304 => out.extend_from_slice(b"-304"),
            other => {
                out.push(b'-');
                write_decimal(out, u64::from(other));
            }
        }
        for (name, us) in [(b"-h", self.held_us), (b"-d", self.delay_us)] {
            if us > 0 {
                out.extend_from_slice(name);
                write_decimal(out, u64::from(us));
            }
        }
        match self.note {
            None => {}
            Some(ResponseNote::Fault) => out.extend_from_slice(b"-f"),
            Some(ResponseNote::BreaksOff(bytes)) => {
                out.extend_from_slice(b"-a");
                write_decimal(out, bytes);
            }
        }
    }

    /// Reads the field's value; none when it is not ours.
    pub fn parse(value: &[u8]) -> Option<Self> {
        let mut parts = FieldParts { rest: Some(value) };
        let xact = parts.xact()?;
        let key = hexadecimal(parts.of_length(16)?)?;
        let version = parts.decimal()?;
        let made_us = parts.decimal()?;
        let status = parts.next().filter(|digits| digits.len() == 3)?;
        let status = assay_http::field::decimal(status).filter(|status| *status >= 100)? as u16;
        let held_us = parts.named(b'h')?;
        let delay_us = parts.named(b'd')?;
        let note = if parts.rest.is_some() { Some(ResponseNote::parse(parts.last()?)?) } else { None };
        Some(Self { xact, key, version, made_us, status, held_us, delay_us, note })
    }
}

impl ResponseNote {
    fn parse(text: &[u8]) -> Option<Self> {
        match text {
            b"f" => Some(ResponseNote::Fault),
            [b'a', bytes @ ..] => assay_http::field::decimal(bytes).map(ResponseNote::BreaksOff),
            _ => None,
        }
    }
}

fn write_xact(out: &mut Vec<u8>, xact: XactId) {
    write_decimal(out, u64::from(xact.robot));
    out.push(b'-');
    write_decimal(out, xact.number);
    out.push(b'-');
    write_decimal(out, u64::from(xact.place));
    out.push(b'-');
}

/// So many decimal digits always fit a number of 64 bits.
const SAFE_DIGITS: usize = 19;

/// The parts between the dashes, left to right.
struct FieldParts<'v> {
    rest: Option<&'v [u8]>,
}

impl<'v> FieldParts<'v> {
    #[inline]
    fn next(&mut self) -> Option<&'v [u8]> {
        let rest = self.rest?;
        let end = rest.iter().position(|b| *b == b'-');
        self.rest = end.map(|end| &rest[end + 1..]);
        Some(&rest[..end.unwrap_or(rest.len())])
    }

    /// The next one, if it has so many bytes and is not the last.
    #[inline]
    fn of_length(&mut self, bytes: usize) -> Option<&'v [u8]> {
        let (part, rest) = self.rest?.split_at_checked(bytes)?;
        self.rest = Some(rest.strip_prefix(b"-")?);
        Some(part)
    }

    /// The number behind this letter, if the next part begins with it; 0, if there is no such part.
    #[inline]
    fn named(&mut self, letter: u8) -> Option<u32> {
        match self.rest {
            Some([first, ..]) if *first == letter => {
                u32::try_from(assay_http::field::decimal(&self.next()?[1..])?).ok()
            }
            _ => Some(0),
        }
    }

    fn last(&mut self) -> Option<&'v [u8]> {
        let part = self.next()?;
        self.rest.is_none().then_some(part)
    }

    #[inline]
    fn decimal(&mut self) -> Option<u64> {
        let rest = self.rest?;
        let (mut sum, mut at) = (0, 0);
        while let Some(digit) = rest.get(at).map(|byte| byte.wrapping_sub(b'0')).filter(|digit| *digit <= 9) {
            if at == SAFE_DIGITS {
                return assay_http::field::decimal(self.next()?);
            }
            sum = sum * 10 + u64::from(digit);
            at += 1;
        }
        self.rest = match rest.get(at) {
            None => None,
            Some(b'-') => Some(&rest[at + 1..]),
            Some(_) => return None,
        };
        (at > 0).then_some(sum)
    }

    fn xact(&mut self) -> Option<XactId> {
        let robot = u32::try_from(self.decimal()?).ok()?;
        let number = self.decimal()?;
        let place = u16::try_from(self.decimal()?).ok()?;
        Some(XactId { robot, number, place })
    }
}

/// Values of hexadecimal digits; anything else has bits above these.
static HEXADECIMAL: [u8; 256] = {
    let mut table = [0xf0; 256];
    let digits = b"0123456789abcdef";
    let mut value = 0;
    while value < digits.len() {
        table[digits[value] as usize] = value as u8;
        value += 1;
    }
    table
};

#[inline]
fn hexadecimal(digits: &[u8]) -> Option<u64> {
    let digits: &[u8; 16] = digits.try_into().ok()?;
    let (mut sum, mut seen) = (0, 0);
    for byte in digits {
        let digit = HEXADECIMAL[usize::from(*byte)];
        seen |= digit;
        sum = (sum << 4) | u64::from(digit & 0xf);
    }
    (seen <= 0xf).then_some(sum)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn xact() -> impl Strategy<Value = XactId> {
        any::<(u32, u64, u16)>().prop_map(|(robot, number, place)| XactId { robot, number, place })
    }

    fn kind() -> impl Strategy<Value = RequestKind> {
        prop::sample::select(vec![
            RequestKind::Basic,
            RequestKind::Conditional,
            RequestKind::Reload,
            RequestKind::Other,
        ])
    }

    fn note() -> impl Strategy<Value = Option<ResponseNote>> {
        prop_oneof![
            Just(None),
            Just(Some(ResponseNote::Fault)),
            any::<u64>().prop_map(|bytes| Some(ResponseNote::BreaksOff(bytes)))
        ]
    }

    #[test]
    fn marks_look_as_the_architecture_says() {
        let xact = XactId { robot: 7, number: 12, place: 3 };
        let mut out = Vec::new();
        RequestMark { xact, phase: 1, kind: RequestKind::Basic, attempt: 0 }.write(&mut out);
        assert_eq!(out, b"7-12-3-1-b");
        out.clear();
        RequestMark { xact, phase: 1, kind: RequestKind::Other, attempt: 2 }.write(&mut out);
        assert_eq!(out, b"7-12-3-1-o2");
        out.clear();
        let mark = ResponseMark {
            xact,
            key: 0xab,
            version: 0,
            made_us: 1_500_000,
            status: 304,
            held_us: 0,
            delay_us: 0,
            note: None,
        };
        mark.write(&mut out);
        assert_eq!(out, b"7-12-3-00000000000000ab-0-1500000-304");
        for (status, note, end) in
            [(503, ResponseNote::Fault, "-503-f"), (206, ResponseNote::BreaksOff(17), "-206-a17")]
        {
            out.clear();
            ResponseMark { status, note: Some(note), ..mark }.write(&mut out);
            assert_eq!(String::from_utf8_lossy(&out), format!("7-12-3-00000000000000ab-0-1500000{end}"));
        }
        out.clear();
        ResponseMark { status: 206, delay_us: 310, note: Some(ResponseNote::BreaksOff(17)), ..mark }
            .write(&mut out);
        assert!(out.ends_with(b"-1500000-206-d310-a17"), "{}", String::from_utf8_lossy(&out));
        out.clear();
        ResponseMark { status: 200, held_us: 40_012, delay_us: 310, ..mark }.write(&mut out);
        assert!(out.ends_with(b"-1500000-200-h40012-d310"), "{}", String::from_utf8_lossy(&out));
    }

    #[test]
    fn what_is_not_a_mark_is_refused() {
        for bad in [
            "",
            "-",
            "1-2-3-4",
            "1-2-3-4-x",
            "1-2-3-4-b-",
            "1-2-3-4-bb",
            "1-2-3-4-b65536",
            "1-2--4-b",
            "4294967296-2-3-4-b",
            "1-2-65536-4-b",
            "a-2-3-4-b",
            "+1-2-3-4-b",
        ] {
            assert_eq!(RequestMark::parse(bad.as_bytes()), None, "{bad}");
        }
        for bad in [
            "",
            "1-2-3-ab-0-1-200",
            "1-2-3-00000000000000AB-0-1-200",
            "1-2-3-00000000000000ab-0-1-99",
            "1-2-3-00000000000000ab-0-1-099",
            "1-2-3-00000000000000ab-0-1-1200",
            "1-2-3-00000000000000ab-0-1-200-g",
            "1-2-3-00000000000000ab-0-1-200-a",
            "1-2-3-00000000000000ab-0-1-200-f-",
            "1-2-3-00000000000000ab-0-1-200-a1-f",
            "1-2-3-00000000000000ab-0-1-200-",
            "1-2-3-00000000000000ab-0-1-200-d",
            "1-2-3-00000000000000ab-0-1-200-d1-",
            "1-2-3-00000000000000ab-0-1-200-d4294967296",
            "1-2-3-00000000000000ab-0-1-200-f-d1",
            "1-2-3-00000000000000ab-0-1-200-h",
            "1-2-3-00000000000000ab-0-1-200-h4294967296",
            "1-2-3-00000000000000ab-0-1-200-d1-h1",
            "1-2-3-00000000000000ab-0-1-200-h1-",
            "1-2-3-00000000000000ab-0--200",
        ] {
            assert_eq!(ResponseMark::parse(bad.as_bytes()), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn a_request_mark_is_read_back_as_written(xact in xact(), phase: u16, kind in kind(), attempt: u16) {
            let mark = RequestMark { xact, phase, kind, attempt };
            let mut out = Vec::new();
            mark.write(&mut out);
            prop_assert_eq!(RequestMark::parse(&out), Some(mark));
        }

        #[test]
        fn a_response_mark_is_read_back_as_written(
            xact in xact(), key: u64, version: u64, made_us: u64, status in 100u16..1000,
            held_us: u32, delay_us: u32, note in note(),
        ) {
            let mark = ResponseMark { xact, key, version, made_us, status, held_us, delay_us, note };
            let mut out = Vec::new();
            mark.write(&mut out);
            prop_assert_eq!(ResponseMark::parse(&out), Some(mark));
        }

        #[test]
        fn any_bytes_give_a_result(bytes in prop::collection::vec(prop::sample::select(&b"0123456789-abcdfhr\xff"[..]), 0..50)) {
            let _ = RequestMark::parse(&bytes);
            let _ = ResponseMark::parse(&bytes);
        }
    }
}
