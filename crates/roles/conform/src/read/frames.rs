//! Frames of HTTP/2 in case files.

use assay_base::settings::{Fields, Mistake, Value};
use assay_http2::frame::{HEAD_BYTES, MAX_31, flag, kind};

use super::Row;
use crate::case::{Frame, Payload};
use crate::http2::frame::{FLAGS, kind_of, payload};
use crate::template::{Values, with_row};

const FRAME: [&str; 7] = ["type", "flags", "stream", "fields", "data", "hex", "times"];
/// Most times that frames are sent, and most bytes that a step sends in them.
const MAX_REPEATS: u64 = 10_000;
const MAX_SENT: u64 = 8 << 20;
const PAYLOADS: [&str; 3] = ["fields", "data", "hex"];

/// The frames of a step; none, if it has no `frames`.
pub(super) fn frames(step: &Fields<'_>, row: &Row) -> Result<Vec<Frame>, Mistake> {
    let Some(value) = step.get("frames") else { return Ok(Vec::new()) };
    let frames: Vec<Frame> = value.list()?.iter().map(|item| frame(item, row)).collect::<Result<_, _>>()?;
    let repeat = repeat(step)?;
    let nobody = Values { token: String::new(), host: String::new(), scheme: "http", now_unix_s: 0 };
    // A frame without a payload has its head.
    let bytes = |frame: &Frame| (payload(frame, &nobody).len() + HEAD_BYTES) as u64 * u64::from(frame.times);
    let all = frames.iter().map(bytes).sum::<u64>() * u64::from(repeat);
    match all > MAX_SENT {
        true => {
            Err(value.wrong(&format!("they are {all} bytes altogether, and a step sends at most {MAX_SENT}")))
        }
        false => Ok(frames),
    }
}

pub(super) fn repeat(step: &Fields<'_>) -> Result<u32, Mistake> {
    // Fits: the bound says so.
    step.get("repeat").map_or(Ok(1), |value| value.whole(1, MAX_REPEATS)).map(|count| count as u32)
}

fn frame(value: &Value<'_>, row: &Row) -> Result<Frame, Mistake> {
    let fields = value.fields("a frame")?;
    fields.only(&FRAME)?;
    let kind = frame_type(&fields.need("type", "like \"HEADERS\"")?, row)?;
    if PAYLOADS.iter().filter(|key| fields.get(key).is_some()).count() > 1 {
        return Err(fields.wrong("a frame has `fields`, `data` or `hex`, and one of them only"));
    }
    let payload = match (fields.get("fields"), fields.get("data"), fields.get("hex")) {
        (Some(lines), _, _) => Payload::Fields(field_lines(&lines, row)?),
        (_, Some(data), _) => Payload::Text(row.text(&data)?),
        (_, _, Some(digits)) => Payload::Bytes(hex(&digits, row)?),
        _ => Payload::Bytes(Vec::new()),
    };
    let usual = match kind {
        kind::HEADERS => flag::END_STREAM | flag::END_HEADERS,
        kind::DATA => flag::END_STREAM,
        kind::CONTINUATION => flag::END_HEADERS,
        _ => 0,
    };
    let stream = fields.get("stream").map(|value| row.whole(&value, 0, u64::from(MAX_31))).transpose()?;
    Ok(Frame {
        kind,
        flags: fields.get("flags").map_or(Ok(usual), |value| flags(&value, row))?,
        // Fits: the bound says so. What is about the connection is on no stream.
        stream: stream.map(|stream| stream as u32).or_else(|| {
            let is_of_connection = matches!(kind, kind::SETTINGS | kind::PING | kind::GOAWAY);
            is_of_connection.then_some(0)
        }),
        payload,
        // Fits: the bound says so.
        times: fields.get("times").map_or(Ok(1), |value| row.whole(&value, 1, MAX_REPEATS))? as u32,
    })
}

fn frame_type(value: &Value<'_>, row: &Row) -> Result<u8, Mistake> {
    // A number, or a text that is a name or a number once the row's values are in it.
    let Ok(text) = value.text() else { return value.whole(0, 255).map(|number| number as u8) };
    let name = with_row(text, &row.values);
    kind_of(&name).ok_or_else(|| {
        value.wrong(&format!(
            "`{name}` is no type of a frame: it is a name like \"HEADERS\", or a number from 0 to 255"
        ))
    })
}

fn flags(value: &Value<'_>, row: &Row) -> Result<u8, Mistake> {
    let bit = |name: &str| {
        let found = FLAGS.iter().find(|(known, _)| *known == name).map(|(_, bit)| *bit);
        found.ok_or_else(|| {
            let known: Vec<&str> = FLAGS.iter().map(|(known, _)| *known).collect();
            value.wrong(&format!("`{name}` is no flag; there are {}", known.join(", ")))
        })
    };
    row.text(value)?.split_whitespace().try_fold(0, |all, name| Ok(all | bit(name)?))
}

/// Field lines as they are sent, the pseudo-header fields among them. They may be wrong, but must have a name and a value.
fn field_lines(value: &Value<'_>, row: &Row) -> Result<Vec<String>, Mistake> {
    let line = |item: &Value<'_>| {
        let text = row.text(item)?;
        match text.is_empty() || text.get(1..).is_some_and(|rest| rest.contains(':')) {
            true => Ok(text),
            false => Err(item.wrong(&format!("`{text}` is no field line, such as \":path: {{url}}\""))),
        }
    };
    let all: Vec<String> = value.list()?.iter().map(line).collect::<Result<_, _>>()?;
    // A row may leave a field out.
    Ok(all.into_iter().filter(|line| !line.is_empty()).collect())
}

fn hex(value: &Value<'_>, row: &Row) -> Result<Vec<u8>, Mistake> {
    let digits: String = row.text(value)?.split_whitespace().collect();
    let wrong = || value.wrong(&format!("`{digits}` is not bytes in hexadecimal, two digits each"));
    if !digits.len().is_multiple_of(2) || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Err(wrong());
    }
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).map_err(|_| wrong());
    (0..digits.len()).step_by(2).map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::super::read;

    fn frames(text: &str) -> Result<Vec<crate::case::Frame>, String> {
        let text = format!(
            "topic = \"t\"\n[[case]]\nname = \"a\"\nlevel = \"MAY\"\nsection = \"s\"\nrule = \"r.\"\nsteps = [{{ {text}, expect = {{ closes = true }} }}]\n"
        );
        read("t.toml", &text)
            .map(|mut file| file.cases.remove(0).steps.remove(0).request.frames)
            .map_err(|mistake| mistake.message)
    }

    #[test]
    fn frames_have_the_flags_and_the_stream_that_they_usually_have() {
        let all = frames(
            "frames = [{ type = \"SETTINGS\", hex = \"0004 0000000a\" }, { type = \"HEADERS\", fields = \":path: /\" }, { type = 66 }]",
        );
        let all = all.unwrap();
        assert_eq!(
            all.iter().map(|frame| (frame.kind, frame.flags, frame.stream)).collect::<Vec<_>>(),
            [(4, 0, Some(0)), (1, 5, None), (66, 0, None)]
        );
        assert_eq!(all[0].payload, crate::case::Payload::Bytes(vec![0, 4, 0, 0, 0, 10]));
    }

    #[test]
    fn mistakes_in_frames_are_shown_with_their_line() {
        for (text, words) in [
            ("frames = [{ type = \"HEADER\" }]", "t.toml:7: type: `HEADER` is no type of a frame"),
            ("frames = [{ type = \"PING\", hex = \"0\" }]", "two digits each"),
            ("frames = [{ type = \"PING\", hex = \"é0\" }]", "two digits each"),
            (
                "frames = [{ type = \"PING\", flags = \"AKC\" }]",
                "`AKC` is no flag; there are END_STREAM, ACK",
            ),
            ("frames = [{ type = \"DATA\", data = \"a\", hex = \"00\" }]", "one of them only"),
            ("frames = [{ type = \"HEADERS\", fields = [\"path\"] }]", "`path` is no field line"),
            ("frames = [{ type = \"DATA\", stream = 2147483648 }]", "is not an integer from 0 to 2147483647"),
            ("frames = []", "the list is empty"),
            (
                "repeat = 10000, frames = [{ type = \"DATA\", data = \"{a-1000}\" }]",
                "t.toml:7: frames: they are 10090000 bytes altogether",
            ),
            ("frames = [{ type = \"DATA\", times = 10001 }]", "is not an integer from 1 to 10000"),
            (
                "repeat = 1000, frames = [{ type = \"DATA\", times = 10000 }]",
                "they are 90000000 bytes altogether",
            ),
            ("frames = [{ typ = \"DATA\" }]", "did you mean `type`?"),
            ("frames = [1]", "is not a table"),
            ("frames = [{ type = \"DATA\" }], method = \"GET\"", "`frames` is the whole request"),
            ("repeat = 3", "there are no `frames` to repeat"),
        ] {
            let seen = frames(text).unwrap_err();
            assert!(seen.contains(words), "{text}: {seen}");
        }
    }
}
