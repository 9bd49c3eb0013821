//! The run directory as its users see it.

mod journal;
mod names;
mod reference;
mod sample;
mod words;
