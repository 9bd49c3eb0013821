//! Reports of made-up runs, as their readers see them.

mod browser;
mod compare;
mod damage;
mod devtools;
mod experiments;
mod export;
mod figures;
mod formulas;
mod hands;
mod live;
mod named;
mod own;
mod page;
mod python;
mod recompute;
mod spe;
mod summary;
mod synthetic;
mod terminal;
