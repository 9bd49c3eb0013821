//! Framing of messages on a stream: a head with `Content-Length`, an empty line, and that many bytes of JSON.

/// Upper bound, in bytes, on a message: a workload has at most 64 MB, escaped in JSON about twice that.
const MESSAGE_MAX: usize = 256 << 20;
/// Upper bound, in bytes, on a head.
const HEAD_MAX: usize = 16 << 10;

/// An error after which the stream cannot be split into messages any more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Start of a head without a valid length.
    #[error(
        "a message must begin with `Content-Length: N` and an empty line, but begins with {0:?}; is the other side a language client?"
    )]
    Head(String),
    #[error("a message has {0} bytes; at most {MESSAGE_MAX} are read")]
    TooLong(usize),
}

/// Buffer of received bytes that are not a complete message yet.
#[derive(Debug, Default)]
pub struct Frames {
    bytes: Vec<u8>,
}

impl Frames {
    /// Appends received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next complete message, without its head.
    pub fn next_message(&mut self) -> Result<Option<Vec<u8>>, FrameError> {
        let Some(end) = find(&self.bytes, b"\r\n\r\n") else {
            return match self.bytes.len() > HEAD_MAX {
                true => Err(FrameError::Head(start_of(&self.bytes))),
                false => Ok(None),
            };
        };
        let length = length(&self.bytes[..end]).ok_or_else(|| FrameError::Head(start_of(&self.bytes)))?;
        if length > MESSAGE_MAX {
            return Err(FrameError::TooLong(length));
        }
        let start = end + 4;
        if self.bytes.len() < start + length {
            return Ok(None);
        }
        let message = self.bytes[start..start + length].to_vec();
        self.bytes.drain(..start + length);
        Ok(Some(message))
    }
}

/// A message with its head.
pub fn framed(message: &serde_json::Value) -> Vec<u8> {
    let text = message.to_string();
    format!("Content-Length: {}\r\n\r\n{text}", text.len()).into_bytes()
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    // A longer head is rejected, so it need not be searched to its end.
    bytes.windows(wanted.len()).take(HEAD_MAX).position(|window| window == wanted)
}

fn length(head: &[u8]) -> Option<usize> {
    let head = std::str::from_utf8(head).ok()?;
    head.split("\r\n").find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    })
}

fn start_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(40)]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn messages_are_cut_wherever_the_stream_is_cut() {
        let stream = [framed(&serde_json::json!({"a": "é"})), framed(&serde_json::json!([]))].concat();
        for cut in 0..stream.len() {
            let mut frames = Frames::default();
            let mut found = Vec::new();
            for part in [&stream[..cut], &stream[cut..]] {
                frames.push(part);
                while let Some(message) = frames.next_message().unwrap() {
                    found.push(String::from_utf8(message).unwrap());
                }
            }
            assert_eq!(found, ["{\"a\":\"é\"}", "[]"], "{cut}");
        }
    }

    #[test]
    fn other_fields_of_a_head_are_passed_over() {
        let mut frames = Frames::default();
        frames.push(b"Content-Type: x\r\ncontent-length:  2 \r\n\r\n{}");
        assert_eq!(frames.next_message().unwrap().unwrap(), b"{}");
    }

    #[test]
    fn what_is_no_message_is_an_error_and_not_waited_for() {
        let mut frames = Frames::default();
        frames.push(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        assert!(frames.next_message().unwrap_err().to_string().contains("language client"));
        let mut frames = Frames::default();
        frames.push(&vec![b'x'; HEAD_MAX + 1]);
        assert!(frames.next_message().is_err());
        let mut frames = Frames::default();
        frames.push(b"Content-Length: 99999999999\r\n\r\n");
        assert_eq!(frames.next_message().unwrap_err(), FrameError::TooLong(99_999_999_999));
    }

    proptest! {
        #[test]
        fn any_bytes_are_messages_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut frames = Frames::default();
            frames.push(&bytes);
            while let Ok(Some(_)) = frames.next_message() {}
        }
    }
}
