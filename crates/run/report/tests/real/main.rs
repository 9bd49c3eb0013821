//! Reports of made-up runs in other programs, which must show and find in them what is there. Needs Chromium, and a
//! Python with pandas, DuckDB and hdrhistogram (`scripts/test-setup.sh` installs them); Chromium must draw a page
//! before it is looked at.

mod browser;
mod compare;
mod devtools;
mod export;
mod hands;
mod live;
#[path = "../it/once.rs"]
mod once;
#[path = "../it/own.rs"]
mod own;
mod python;
mod recompute;
mod review;
mod serve;
#[path = "../it/synthetic.rs"]
mod synthetic;
