//! Where are the bytes of a chunked body?
