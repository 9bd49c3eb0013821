//! Reports of what is no single run: balancing policies on a cluster ([`policies`]), and an evaluation of proxies on live
//! traffic ([`spe`]), each as a document, in a terminal and as one offline HTML page.
//!
//! *Does not:* measure, simulate, or report a run (that is `assay-report`) or compare runs (that is `assay-compare`), whose
//! statistics and page elements it shares.

pub mod policies;
pub mod spe;
