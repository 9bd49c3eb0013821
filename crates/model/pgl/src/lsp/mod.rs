//! Language server for workloads (Language Server Protocol 3.17): messages in, messages out.
//!
//! [`Server`] keeps the texts that are open in an editor, has the compiler analyse them, and translates the results to the
//! protocol. [`Frames`] splits a stream of bytes into messages, and [`framed`] encodes one. Diagnostics, corrections and the
//! layout are the compiler's.
//!
//! *Does not:* read a file (all text comes from the editor or through the [`Host`]), touch standard input or output, start a
//! thread, or have knowledge of the language itself.

mod features;
mod frames;
mod protocol;
mod server;
mod text;
mod uri;

pub use frames::{FrameError, Frames, framed};
pub use server::{Host, Server};
