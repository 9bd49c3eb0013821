//! Replacement policies and freshness rules, as data structures without I/O

pub mod ideal;
