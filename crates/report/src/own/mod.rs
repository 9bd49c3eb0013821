//! What does a run say of Assay itself? Its doubts in words, its health in numbers, charts and tables.

pub(crate) mod health;
pub(crate) mod sums;
pub(crate) mod words;
