//! When the conformance cases of a run begin and end.

use std::time::Duration;

use assay_conform::document::TargetInfo;

use crate::run::Session;

impl Session {
    /// Conformance cases begin with the load.
    pub(crate) fn begin_cases(&mut self) {
        let until_start = Duration::from_millis(self.until_start_ms());
        let target = self.prepared.target.zip(self.plan.target.mode());
        if let (Some(cases), Some(target)) = (&mut self.alongside, target) {
            let version = self.info.target.version.trim();
            let info = TargetInfo {
                label: self.info.target.name.clone(),
                software: format!("{} {version}", self.info.target.name).trim_end().to_owned(),
                ..TargetInfo::default()
            };
            cases.begin(target, info, self.prepared.behaviour.caches, until_start);
        }
    }

    /// They end with it.
    pub(crate) async fn end_cases(&mut self) {
        let run_dir = self.run_dir();
        if let Some(cases) = self.alongside.take()
            && let Err(words) = cases.end(&run_dir).await
        {
            self.tally.warn(words);
        }
    }
}
