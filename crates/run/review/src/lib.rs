//! Reports of what is no single run: balancing policies on a cluster ([`policies`]), an evaluation of proxies on live
//! traffic ([`spe`]), and the results of conformance cases ([`conform`]), each as a document, in a terminal and as one offline HTML page.
//!
//! *Does not:* measure, simulate, or report a run (that is `assay-report`) or compare runs (that is `assay-compare`), whose
//! statistics and page elements it shares.

pub mod conform;
pub mod policies;
pub mod spe;
