//! Curves from files, and the document in every form.

mod forms;
mod sampling;
