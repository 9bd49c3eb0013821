//! Cases tried on targets that are simple enough to know what must come of them, and the forms of results and of case files.

mod built_in;
mod careless;
mod forms;
mod mutants;
mod targets;
