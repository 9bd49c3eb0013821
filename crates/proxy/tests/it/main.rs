//! The proxy between a scripted origin and raw clients.
