//! The streams of a connection: their states, their windows, and the bodies that they must carry (RFC 9113, 5 and 8.1).

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::message::Malformed;

/// A stream. Its place is below the most streams that were ever open at once, and is used again, so that a caller can keep its
/// own state of each stream in a vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stream {
    /// Number on the wire.
    pub id: u32,
    /// Place of its state.
    pub place: u32,
}

/// Body that a message must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Body {
    Any,
    /// As long as announced.
    Length(u64),
    /// There is none: responses to HEAD, and 204 and 304.
    None,
}

/// State of an open stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct State {
    pub(crate) id: u32,
    /// Whether this side may still send.
    pub(crate) sends: bool,
    /// The peer may still send.
    pub(crate) receives: bool,
    /// The final head has come.
    pub(crate) has_head: bool,
    /// The request was HEAD.
    pub(crate) is_head: bool,
    /// Bytes that this side may send; below zero where the peer has lowered it since (RFC 9113, 6.9.2).
    pub(crate) send_window: i64,
    /// Bytes that the peer may send.
    pub(crate) receive_window: i64,
    /// Bytes that were received and not returned to the window.
    pub(crate) consumed: u32,
    /// The body that must come.
    pub(crate) body: Body,
    /// Bytes of the body so far.
    pub(crate) body_bytes: u64,
}

impl State {
    /// Counts bytes of the body.
    #[inline]
    pub(crate) fn count_data(&mut self, bytes: u64) -> Result<(), Malformed> {
        self.body_bytes += bytes;
        match self.body {
            Body::Length(announced) if self.body_bytes > announced => {
                Err(Malformed::BodyLength { announced, seen: self.body_bytes })
            }
            Body::None if bytes > 0 => Err(Malformed::Body),
            _ => Ok(()),
        }
    }

    /// Checks the length of the body at the end of the message.
    #[inline]
    pub(crate) fn finish(&self) -> Result<(), Malformed> {
        match self.body {
            Body::Length(announced) if self.body_bytes != announced => {
                Err(Malformed::BodyLength { announced, seen: self.body_bytes })
            }
            _ => Ok(()),
        }
    }

    /// All of the body that is to come fits into what the peer may send already.
    #[inline]
    pub(crate) fn needs_no_update(&self) -> bool {
        match self.body {
            Body::Length(announced) => {
                i64::try_from(announced - self.body_bytes).is_ok_and(|left| left <= self.receive_window)
            }
            _ => false,
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Streams {
    states: Vec<State>,
    free: Vec<u32>,
    places: HashMap<u32, u32, BuildHasherDefault<IdHasher>>,
}

impl Streams {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    pub(crate) fn insert(&mut self, state: State) -> Stream {
        let place = match self.free.pop() {
            Some(place) => {
                self.states[place as usize] = state;
                place
            }
            None => {
                // Most connections have one stream at a time: no room for four at once, which a vector would begin with.
                if self.states.capacity() == 0 {
                    self.states.reserve_exact(1);
                }
                self.states.push(state);
                self.states.len() as u32 - 1
            }
        };
        self.places.insert(state.id, place);
        Stream { id: state.id, place }
    }

    /// The open stream with this number.
    #[inline]
    pub(crate) fn find(&self, id: u32) -> Option<Stream> {
        self.places.get(&id).map(|&place| Stream { id, place })
    }

    /// State of a stream; none: it has ended.
    #[inline]
    pub(crate) fn get(&self, stream: Stream) -> Option<&State> {
        self.states.get(stream.place as usize).filter(|state| state.id == stream.id)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, stream: Stream) -> Option<&mut State> {
        self.states.get_mut(stream.place as usize).filter(|state| state.id == stream.id)
    }

    pub(crate) fn remove(&mut self, stream: Stream) -> bool {
        let Some(state) = self.get_mut(stream) else { return false };
        state.id = 0;
        self.free.push(stream.place);
        self.places.remove(&stream.id);
        true
    }

    pub(crate) fn states_mut(&mut self) -> impl Iterator<Item = &mut State> {
        self.states.iter_mut().filter(|state| state.id != 0)
    }

    /// An open stream with a number above `last`.
    pub(crate) fn above(&self, last: u32) -> Option<Stream> {
        let found = self.states.iter().zip(0..).find(|(state, _)| state.id > last);
        found.map(|(state, place)| Stream { id: state.id, place })
    }
}

/// Numbers of streams need no mixing but what tells neighbours apart: a peer chooses them, but only upwards.
#[derive(Debug, Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u32(byte.into()));
    }

    #[inline]
    fn write_u32(&mut self, id: u32) {
        self.0 = (self.0 ^ u64::from(id)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}
