//! The language server of workloads (Language Server Protocol 3.17): messages in, messages out.
//!
//! [`Server`] keeps the texts that are open in an editor, has the compiler analyse them, and says what it found in the editor's
//! terms. [`Frames`] cuts a stream of bytes into messages, and [`framed`] makes bytes of one. Diagnostics are the compiler's own;
//! so are the corrections and the layout.
//!
//! *Does not:* read a file (all text comes from the editor or through the [`Host`]), touch standard input or output, start a
//! thread, or know anything about the language that `pgl` does not tell.

mod edits;
mod features;
mod frames;
mod protocol;
mod server;
mod text;
mod uri;

pub use frames::{FrameError, Frames, framed};
pub use server::{Host, Server};
