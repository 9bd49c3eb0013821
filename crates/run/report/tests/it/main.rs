//! Reports of made-up runs, as their readers see them.

mod compare;
mod damage;
mod export;
mod figures;
mod formulas;
mod live;
mod once;
mod own;
mod page;
mod review;
mod serve;
mod stories;
mod summary;
mod synthetic;
mod terminal;
