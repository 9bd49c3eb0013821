//! Logs of every format, from their bytes to the document.

mod broken;
mod formats;
mod real;
mod support;
