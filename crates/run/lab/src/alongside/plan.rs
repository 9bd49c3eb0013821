//! Which conformance cases are tried beside the load of a run.

use std::rc::Rc;
use std::sync::Arc;

use assay_conform::alongside::is_fit;
use assay_conform::case::Case;

/// What is tried beside the load.
#[derive(Debug, Clone)]
pub struct ConformPlan {
    /// As chosen: topics, or names of cases.
    pub chosen: Vec<String>,
    /// The cases, with those that they depend on.
    pub cases: Arc<[Case]>,
}

impl ConformPlan {
    /// Of the cases that were chosen, those that can be tried beside other requests; none, if none can.
    pub fn new(chosen: &[String], cases: &[Rc<Case>]) -> Option<Self> {
        let fit: Vec<Case> = cases.iter().filter(|case| is_fit(case)).map(|case| (**case).clone()).collect();
        let is_chosen = |case: &Case| chosen.iter().any(|name| case.is_called(name));
        fit.iter().any(is_chosen).then(|| Self { chosen: chosen.to_vec(), cases: fit.into() })
    }
}
