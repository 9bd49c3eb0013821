//! Logs of every format, from their bytes to the document.

mod broken;
mod counter;
mod fields;
mod formats;
mod nothing;
mod senders;
mod support;
