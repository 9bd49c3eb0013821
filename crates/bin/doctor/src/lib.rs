//! What this machine can carry and measure, what it lacks, and the command that would fix that.
//!
//! [`facts()`] looks at the machine; [`judge()`] turns what it saw into findings, and is pure.
//!
//! *Does not:* change anything on the machine, measure how fast it is (that is `assay run --calibrate`), or check a particular
//! run (that is `assay check`).

mod facts;
mod judge;

pub use facts::{BROWSERS, Facts, ProxyFact, facts};
pub use judge::{Finding, Standing, judge};
