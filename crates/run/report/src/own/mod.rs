//! Assay's own part in a run: doubts as text, health in numbers, charts and tables.

pub(crate) mod charts;
pub(crate) mod health;
pub(crate) mod steps;
pub(crate) mod sums;
pub(crate) mod tables;
pub(crate) mod text;
