//! Parses policies and their settings.

use assay_base::settings::suggest::nearest;
use assay_base::settings::{Fields, Mistake, Value};
use assay_cluster::dispatch::PolicyConfig;
use assay_cluster::dispatch::policies::bounded_hash::BoundedHashSettings;
use assay_cluster::dispatch::policies::cap_with_state::{CapWithStateSettings, ClassProfile};
use assay_cluster::dispatch::policies::lard::LardSettings;
use assay_cluster::dispatch::policies::lard_replicated::LardReplicatedSettings;
use assay_cluster::dispatch::policies::peak_ewma::PeakEwmaSettings;
use assay_cluster::dispatch::policies::prequal::PrequalSettings;
use assay_cluster::dispatch::policies::weighted_by_load::WeightedByLoadSettings;

use super::values::{target, texts, time_or, whole_or};
use crate::target_hash::hash_target;

/// Parses `policy = "lc"` or `policy = { name = "lard", t-low = 25 }`.
pub(super) fn policy(value: &Value<'_>) -> Result<PolicyConfig, Mistake> {
    let Ok(name) = value.text() else {
        let fields = value.fields("a policy")?;
        let name = fields.need("name", "which policy")?;
        return with_settings(named(&name)?, &fields);
    };
    let policy = PolicyConfig::from_name(name).ok_or_else(|| unknown(value, name))?;
    without_settings(policy, value)
}

fn named(value: &Value<'_>) -> Result<PolicyConfig, Mistake> {
    let name = value.text()?;
    PolicyConfig::from_name(name).ok_or_else(|| unknown(value, name))
}

fn unknown(value: &Value<'_>, name: &str) -> Mistake {
    let all: Vec<&str> = PolicyConfig::all().iter().map(PolicyConfig::name).collect();
    let meant = nearest(name, all.iter().copied())
        .map_or_else(|| format!("there are {}", all.join(", ")), |near| format!("did you mean `{near}`?"));
    value.wrong(&format!("there is no policy `{name}`; {meant}"))
}

fn without_settings(policy: PolicyConfig, value: &Value<'_>) -> Result<PolicyConfig, Mistake> {
    match policy {
        PolicyConfig::Ward(_) => {
            let message = "ward needs the documents that every server keeps: \
                       policy = { name = \"ward\", core = [\"/index.html\"] }; `assay simulate` finds them";
            Err(value.wrong(message))
        }
        policy => Ok(policy),
    }
}

fn with_settings(policy: PolicyConfig, fields: &Fields<'_>) -> Result<PolicyConfig, Mistake> {
    let secs = |key: &str, usual: f64| {
        time_or(fields, key, std::time::Duration::from_secs_f64(usual)).map(|time| time.as_secs_f64())
    };
    let number = |key: &str, above: f64, usual: f64| {
        fields.get(key).map_or(Ok(usual), |value| value.number(above, 1e6))
    };
    let lard = |usual: LardSettings| -> Result<LardSettings, Mistake> {
        let t_low = whole_or(fields, "t-low", u64::from(usual.t_low), 1..=1 << 30)? as u32;
        let t_high = whole_or(fields, "t-high", u64::from(usual.t_high), 1..=1 << 30)? as u32;
        if t_high <= t_low {
            return Err(fields.wrong(&format!("t-high ({t_high}) must be above t-low ({t_low})")));
        }
        Ok(LardSettings { t_low, t_high, ..usual })
    };
    let (allowed, policy): (&[&str], PolicyConfig) = match policy {
        PolicyConfig::PeakEwma(usual) => {
            (&["decay"], PolicyConfig::PeakEwma(PeakEwmaSettings { decay_s: secs("decay", usual.decay_s)? }))
        }
        PolicyConfig::BoundedHash(usual) => {
            let bound = number("bound", 1.0, usual.bound)?;
            (&["bound"], PolicyConfig::BoundedHash(BoundedHashSettings { bound }))
        }
        PolicyConfig::Lard(usual) => (&["t-low", "t-high"], PolicyConfig::Lard(lard(usual)?)),
        PolicyConfig::LardReplicated(usual) => {
            let shrink_after_s = secs("shrink-after", usual.shrink_after_s)?;
            let settings = LardReplicatedSettings { lard: lard(usual.lard)?, shrink_after_s };
            (&["t-low", "t-high", "shrink-after"], PolicyConfig::LardReplicated(settings))
        }
        PolicyConfig::Prequal(usual) => {
            let settings = PrequalSettings {
                probes: number("probes", 0.0, usual.probes)?,
                pool: whole_or(fields, "pool", usual.pool as u64, 1..=100_000)? as usize,
                age_s: secs("age", usual.age_s)?,
                ..usual
            };
            (&["probes", "pool", "age"], PolicyConfig::Prequal(settings))
        }
        PolicyConfig::Ward(_) => {
            fields.need("core", "the documents that every server keeps")?;
            let core: Result<Vec<u64>, Mistake> = texts(fields, "core")?
                .iter()
                .map(|value| target(value).map(|path| hash_target(path.as_bytes())))
                .collect();
            (&["core"], PolicyConfig::Ward(core?))
        }
        PolicyConfig::CapWithState(usual) => {
            let settings = CapWithStateSettings {
                trust: fields.get("trust").map_or(Ok(usual.trust), |value| value.number(0.0, 1.0))?,
                stale_after_s: secs("stale-after", usual.stale_after_s)?,
                ..usual
            };
            (&["trust", "stale-after"], PolicyConfig::CapWithState(settings))
        }
        PolicyConfig::WeightedByLoad(usual) => {
            let settings = WeightedByLoadSettings {
                trust: fields.get("trust").map_or(Ok(usual.trust), |value| value.number(0.0, 1.0))?,
                stale_after_s: secs("stale-after", usual.stale_after_s)?,
                ..usual
            };
            (&["trust", "stale-after"], PolicyConfig::WeightedByLoad(settings))
        }
        other => (&[], other),
    };
    let known: Vec<&str> = ["name"].iter().chain(allowed).copied().collect();
    fields.only(&known)?;
    Ok(policy)
}

/// Parses `needs = { processor = 0.9, disk = 0.1 }`.
pub(super) fn needs(value: &Value<'_>) -> Result<ClassProfile, Mistake> {
    let fields = value.fields("needs")?;
    fields.only(&["processor", "disk", "network"])?;
    let part = |key: &str| {
        fields.get(key).map_or(Ok(0.0), |value| match value.plain()?.parse::<f64>() {
            Ok(part) if (0.0..=1e6).contains(&part) => Ok(part),
            _ => Err(value.wrong("it is a number from 0 on")),
        })
    };
    Ok(ClassProfile { processor: part("processor")?, disk: part("disk")?, network: part("network")? })
}
