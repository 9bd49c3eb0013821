//! Logs of every format, from their bytes to the document.

mod broken;
mod fields;
mod formats;
mod nothing;
mod real;
mod senders;
mod support;
