//! Logs of every format, from their bytes to the document.

mod broken;
mod cases;
mod counter;
mod fields;
mod formats;
mod forms;
mod nothing;
mod prefixes;
mod senders;
mod size;
mod support;
mod writers;
