//! Keys that were pressed. Read from the terminal as they come, without waiting and without a thread.
//!
//! Ctrl-C is no key: it stays the signal that it is everywhere else.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A key that means something here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// A printable one.
    Char(char),
    /// Tab or →.
    Next,
    /// Shift-Tab or ←.
    Previous,
    /// ↑.
    Up,
    /// ↓.
    Down,
    /// Escape.
    Escape,
}

/// Keys of standard input.
pub struct Keys {
    /// None: nobody can press any.
    input: Option<AsyncFd<OwnedFd>>,
}

impl Keys {
    /// Reads keys if somebody can press them. The terminal must give them at once, and nothing where there is none.
    /// Must be called on a runtime.
    pub fn listen(can: bool) -> Self {
        Self { input: if can { readable_input() } else { None } }
    }

    pub async fn next(&mut self) -> Vec<Key> {
        loop {
            let Some(input) = &self.input else { return std::future::pending().await };
            let Ok(mut ready) = input.readable().await else {
                self.input = None;
                continue;
            };
            let mut bytes = [0; 64];
            // The terminal was told to give what there is: this does not wait.
            let read = rustix::io::read(ready.get_inner(), &mut bytes);
            ready.clear_ready();
            match read {
                Ok(0) => {}
                Ok(count) => return parse(&bytes[..count]),
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
                // The terminal is gone; the run goes on.
                Err(_) => self.input = None,
            }
        }
    }
}

/// A descriptor of its own for standard input, watched by the runtime; none where that cannot be.
fn readable_input() -> Option<AsyncFd<OwnedFd>> {
    let descriptor = io::stdin().as_fd().try_clone_to_owned().ok()?;
    // SAFETY: an `OwnedFd` that is moved in keeps naming the same open file until it is dropped with the `AsyncFd`.
    unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) }.ok()
}

/// Keys in what a terminal sent. What is not known is passed over.
fn parse(mut bytes: &[u8]) -> Vec<Key> {
    let mut keys = Vec::new();
    while let Some((&first, rest)) = bytes.split_first() {
        bytes = rest;
        match first {
            b'\t' => keys.push(Key::Next),
            b'\r' | b'\n' => keys.push(Key::Char('\n')),
            0x1b => match rest {
                [b'[' | b'O', sequence @ ..] => {
                    // Parameters, then the letter that says what it is.
                    let length = sequence
                        .iter()
                        .take_while(|byte| !byte.is_ascii_alphabetic() && **byte != b'~')
                        .count();
                    keys.extend(match sequence.get(length) {
                        Some(b'C') => Some(Key::Next),
                        Some(b'D' | b'Z') => Some(Key::Previous),
                        Some(b'A') => Some(Key::Up),
                        Some(b'B') => Some(Key::Down),
                        _ => None,
                    });
                    bytes = sequence.get(length + 1..).unwrap_or_default();
                }
                _ => keys.push(Key::Escape),
            },
            b' '..=b'~' => keys.push(Key::Char(first as char)),
            _ => {}
        }
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrows_and_letters_are_told_apart_and_the_rest_is_passed_over() {
        use Key::{Char, Down, Escape, Next, Previous, Up};
        assert_eq!(parse(b"q?2"), [Char('q'), Char('?'), Char('2')]);
        assert_eq!(parse(b"\t\x1b[C\x1b[Z\x1b[D\x1bOA\x1b[1;5B"), [Next, Next, Previous, Previous, Up, Down]);
        assert_eq!(parse(b"\x1b"), [Escape]);
        assert_eq!(parse(b"\x1b[15~p\xc3\xa4\x00\x1b["), [Char('p')]);
        assert_eq!(parse(b""), []);
    }
}
