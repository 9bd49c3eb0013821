//! Comparisons of made-up runs, as their readers see them.

mod experiments;
mod made_up;
mod named;
