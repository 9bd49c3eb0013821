//! The forms of results and of case files.

mod forms;
