//! Reports of made-up runs, as their readers see them.

mod browser;
mod compare;
mod experiments;
mod formulas;
mod own;
mod page;
mod summary;
mod synthetic;
mod terminal;
