//! Reports of made-up runs, as their readers see them.

mod browser;
mod damage;
mod devtools;
mod export;
mod figures;
mod formulas;
mod hands;
mod live;
mod once;
mod own;
mod page;
mod python;
mod recompute;
mod summary;
mod synthetic;
mod terminal;
