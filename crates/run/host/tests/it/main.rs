//! The judgement of runs against the documentation.

mod doubts;
