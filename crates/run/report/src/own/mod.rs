//! What a run says of Assay itself. Its doubts in words, its health in numbers, charts and tables.

pub(crate) mod charts;
pub(crate) mod health;
pub(crate) mod steps;
pub(crate) mod sums;
pub(crate) mod tables;
pub(crate) mod text;
