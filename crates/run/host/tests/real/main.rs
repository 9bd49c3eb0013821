//! What needs root, namespaces and the clock.

mod link;
