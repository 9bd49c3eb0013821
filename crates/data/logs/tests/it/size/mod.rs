//! Curves from files, and the document in every form.

mod che;
mod forms;
mod logs;
mod sampling;
mod traces;
