//! What instant does an HTTP date name, and how is one written?
