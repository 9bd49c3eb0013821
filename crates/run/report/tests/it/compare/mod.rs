//! Comparisons of made-up runs, as their readers see them.

mod compare;
mod experiments;
mod named;
