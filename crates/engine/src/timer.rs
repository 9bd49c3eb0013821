//! When is something due, to within microseconds?
