//! SETTINGS of each side (RFC 9113, 6.5; RFC 9218, 2.1).

use crate::error::ConnectionError;
use crate::frame::{DEFAULT_FRAME_BYTES, FrameHead, MAX_31, MAX_FRAME_BYTES, flag, kind};
use crate::hpack::DEFAULT_TABLE_BYTES;

/// Window of a stream, and of the connection, before anybody has said otherwise.
pub const DEFAULT_WINDOW_BYTES: u32 = 65_535;

pub(crate) const HEADER_TABLE_SIZE: u16 = 0x1;
pub(crate) const ENABLE_PUSH: u16 = 0x2;
pub(crate) const MAX_CONCURRENT_STREAMS: u16 = 0x3;
pub(crate) const INITIAL_WINDOW_SIZE: u16 = 0x4;
pub(crate) const MAX_FRAME_SIZE: u16 = 0x5;
pub(crate) const MAX_HEADER_LIST_SIZE: u16 = 0x6;
pub(crate) const NO_RFC7540_PRIORITIES: u16 = 0x9;

/// Length of one setting.
const SETTING_BYTES: usize = 6;

/// The settings of one side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Largest dynamic table that the peer may use for encoding, in bytes.
    pub header_table_bytes: u32,
    /// Whether responses may be pushed.
    pub enable_push: bool,
    /// Most streams that the peer may have open.
    pub max_streams: u32,
    /// Window of a new stream, in bytes.
    pub window_bytes: u32,
    /// Longest payload of a frame that is accepted.
    pub max_frame_bytes: u32,
    /// Largest header section that is accepted, by the measure of RFC 9113, 6.5.2.
    pub max_section_bytes: u32,
    /// The priorities of RFC 7540 are not used.
    pub no_old_priorities: bool,
}

impl Default for Settings {
    /// Settings in force before any SETTINGS frame.
    fn default() -> Self {
        Self {
            header_table_bytes: DEFAULT_TABLE_BYTES,
            enable_push: true,
            max_streams: u32::MAX,
            window_bytes: DEFAULT_WINDOW_BYTES,
            max_frame_bytes: DEFAULT_FRAME_BYTES,
            max_section_bytes: u32::MAX,
            no_old_priorities: false,
        }
    }
}

impl Settings {
    /// Changes what the payload of a SETTINGS frame states. Unknown settings are ignored.
    pub fn apply(&mut self, payload: &[u8]) -> Result<(), ConnectionError> {
        let (settings, rest) = payload.as_chunks::<SETTING_BYTES>();
        if !rest.is_empty() {
            return Err(ConnectionError::FrameSize { kind: kind::SETTINGS, length: payload.len() as u32 });
        }
        for &[i0, i1, v0, v1, v2, v3] in settings {
            self.set(u16::from_be_bytes([i0, i1]), u32::from_be_bytes([v0, v1, v2, v3]))?;
        }
        Ok(())
    }

    fn set(&mut self, id: u16, value: u32) -> Result<(), ConnectionError> {
        let impossible = ConnectionError::Setting { id, value };
        match id {
            HEADER_TABLE_SIZE => self.header_table_bytes = value,
            ENABLE_PUSH if value > 1 => return Err(impossible),
            ENABLE_PUSH => self.enable_push = value == 1,
            MAX_CONCURRENT_STREAMS => self.max_streams = value,
            INITIAL_WINDOW_SIZE if value > MAX_31 => return Err(impossible),
            INITIAL_WINDOW_SIZE => self.window_bytes = value,
            MAX_FRAME_SIZE if !(DEFAULT_FRAME_BYTES..=MAX_FRAME_BYTES).contains(&value) => {
                return Err(impossible);
            }
            MAX_FRAME_SIZE => self.max_frame_bytes = value,
            MAX_HEADER_LIST_SIZE => self.max_section_bytes = value,
            NO_RFC7540_PRIORITIES if value > 1 => return Err(impossible),
            NO_RFC7540_PRIORITIES => self.no_old_priorities = value == 1,
            _ => {}
        }
        Ok(())
    }

    /// Appends a SETTINGS frame with all that differs from the defaults.
    pub fn write(&self, out: &mut Vec<u8>) {
        let usual = Self::default();
        let all = [
            (HEADER_TABLE_SIZE, self.header_table_bytes, usual.header_table_bytes),
            (ENABLE_PUSH, self.enable_push.into(), usual.enable_push.into()),
            (MAX_CONCURRENT_STREAMS, self.max_streams, usual.max_streams),
            (INITIAL_WINDOW_SIZE, self.window_bytes, usual.window_bytes),
            (MAX_FRAME_SIZE, self.max_frame_bytes, usual.max_frame_bytes),
            (MAX_HEADER_LIST_SIZE, self.max_section_bytes, usual.max_section_bytes),
            (NO_RFC7540_PRIORITIES, self.no_old_priorities.into(), usual.no_old_priorities.into()),
        ];
        let changed = all.iter().filter(|(_, value, usual)| value != usual);
        let length = (SETTING_BYTES * changed.clone().count()) as u32;
        out.extend_from_slice(&FrameHead { length, kind: kind::SETTINGS, flags: 0, stream: 0 }.bytes());
        for (id, value, _) in changed {
            out.extend_from_slice(&id.to_be_bytes());
            out.extend_from_slice(&value.to_be_bytes());
        }
    }
}

/// Whether the payload of a SETTINGS frame says that pushing to its sender is allowed, which a client alone may (RFC 9113, 6.5.2),
/// even where it takes it back further on.
pub(crate) fn allows_push(payload: &[u8]) -> bool {
    let (settings, _) = payload.as_chunks::<SETTING_BYTES>();
    settings.contains(&[0, ENABLE_PUSH as u8, 0, 0, 0, 1])
}

/// Whether a SETTINGS frame acknowledges ours. An acknowledgement has no payload.
pub(crate) fn is_ack(head: FrameHead) -> Result<bool, ConnectionError> {
    match head.has(flag::ACK) {
        true if head.length != 0 => {
            Err(ConnectionError::FrameSize { kind: kind::SETTINGS, length: head.length })
        }
        is_ack => Ok(is_ack),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::error::ErrorCode;
    use crate::frame::HEAD_BYTES;

    #[test]
    fn impossible_values_are_refused_with_the_code_of_the_rfc() {
        for (id, value, code) in [
            (ENABLE_PUSH, 2, ErrorCode::PROTOCOL_ERROR),
            (INITIAL_WINDOW_SIZE, 1 << 31, ErrorCode::FLOW_CONTROL_ERROR),
            (MAX_FRAME_SIZE, 16_383, ErrorCode::PROTOCOL_ERROR),
            (MAX_FRAME_SIZE, 1 << 24, ErrorCode::PROTOCOL_ERROR),
            (NO_RFC7540_PRIORITIES, 2, ErrorCode::PROTOCOL_ERROR),
        ] {
            let payload = [&id.to_be_bytes()[..], &u32::to_be_bytes(value)].concat();
            let error = Settings::default().apply(&payload).expect_err("is impossible");
            assert_eq!((error, error.code()), (ConnectionError::Setting { id, value }, code));
        }
        let error = Settings::default().apply(&[0; 7]).expect_err("is no setting");
        assert_eq!(error.code(), ErrorCode::FRAME_SIZE_ERROR);
    }

    proptest! {
        #[test]
        fn settings_that_are_written_are_read_back(
            header_table_bytes in any::<u32>(), enable_push in any::<bool>(), max_streams in any::<u32>(),
            window_bytes in 0..=MAX_31, max_frame_bytes in DEFAULT_FRAME_BYTES..=MAX_FRAME_BYTES,
            max_section_bytes in any::<u32>(), no_old_priorities in any::<bool>(),
        ) {
            let settings = Settings {
                header_table_bytes, enable_push, max_streams, window_bytes, max_frame_bytes, max_section_bytes,
                no_old_priorities,
            };
            let (mut out, mut seen) = (Vec::new(), Settings::default());
            settings.write(&mut out);
            seen.apply(&out[HEAD_BYTES..]).expect("is valid");
            prop_assert_eq!(seen, settings);
        }

        #[test]
        fn any_payload_gives_settings_or_an_error(payload in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = Settings::default().apply(&payload);
        }
    }
}
