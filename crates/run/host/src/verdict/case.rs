//! What each look at a run is given.

use assay_record::run::RunInfo;

use super::evidence::{Evidence, PhaseEvidence, Side};

/// A run under judgement.
pub struct Case<'a> {
    pub info: &'a RunInfo,
    pub evidence: &'a Evidence,
}

impl<'a> Case<'a> {
    /// What was seen in each phase, with its index.
    pub fn phases(&self) -> impl Iterator<Item = (u16, &'a PhaseEvidence)> + use<'a> {
        (0..).zip(&self.evidence.phases)
    }

    /// How late a bare timer was before the run in a role's worst thread.
    pub fn baseline_us(&self, side: Side) -> Option<u64> {
        let of_side = self.evidence.baselines.iter().filter(|(of, _, _)| *of == side);
        of_side.map(|(_, _, p99_us)| *p99_us).max()
    }

    /// How many processors a proxy has that the lab started, if a thread's is among them; 0: all.
    pub fn proxy_beside(&self, cpu: Option<u32>) -> Option<usize> {
        let proxy = self.info.placement.iter().find(|placed| placed.role == "proxy")?;
        let shares = proxy.cpus.is_empty() || cpu.is_none_or(|cpu| proxy.cpus.contains(&cpu));
        shares.then_some(proxy.cpus.len())
    }
}
