//! Logs of every format, from their bytes to the document.
