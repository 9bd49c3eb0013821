//! Numbers, shares, sizes and times as people write them.

use assay_base::settings::show::{bytes, count, plain};

use std::time::Duration;

use crate::model::{ContentIndex, Distribution, Extent, RandomExtent, Weighted, Workload};

/// Content types by their labels.
pub(super) fn kinds(workload: &Workload, contents: &Weighted<ContentIndex>) -> String {
    mix(contents, |content| {
        workload.contents.get(usize::from(*content)).map_or("?", |c| c.kind.as_str()).to_string()
    })
}

/// The mean of a random variable, and how far it scatters.
pub(super) fn draws(law: &Distribution, unit: &str) -> String {
    let scatter = law.deviation();
    let around = if scatter > 0.0 { format!(" ± {}", plain(scatter)) } else { String::new() };
    format!("{}{around} {unit}", plain(law.mean()))
}

/// A position or a length.
pub(super) fn extent(extent: Extent) -> String {
    match extent {
        Extent::Bytes(size) => bytes(size),
        Extent::Share(share) => percent(share),
    }
}

pub(super) fn random_extent(extent: &RandomExtent) -> String {
    match extent {
        RandomExtent::Bytes(size) => bytes(size.mean_count().round() as u64),
        RandomExtent::Share(share) => percent(share.mean()),
    }
}

/// Present parts, joined with commas.
pub(super) fn joined(parts: impl IntoIterator<Item = Option<String>>) -> String {
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Items with their shares, the likely ones first.
pub(super) fn mix<T>(weighted: &Weighted<T>, name: impl Fn(&T) -> String) -> String {
    let mut items: Vec<_> = weighted.items().iter().filter(|(_, share)| *share > 0.0).collect();
    items.sort_by(|a, b| b.1.total_cmp(&a.1));
    match items.as_slice() {
        [only] => name(&only.0),
        _ => items
            .iter()
            .map(|(i, share)| format!("{} {}", name(i), percent(*share)))
            .collect::<Vec<_>>()
            .join(", "),
    }
}

pub(super) fn several(number: usize, what: &str) -> String {
    format!("{} {what}{}", count(number as u64), if number == 1 { "" } else { "s" })
}

pub(super) fn percent(share: f64) -> String {
    format!("{}%", plain(share * 100.0))
}

pub(super) fn time(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    let (value, unit) = match seconds {
        s if s < 120.0 => (s, "s"),
        s if s < 2.0 * 3600.0 => (s / 60.0, "min"),
        s if s < 2.0 * 86_400.0 => (s / 3600.0, "h"),
        s => (s / 86_400.0, "days"),
    };
    format!("{} {unit}", plain(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_the_unit_that_suits_them() {
        assert_eq!(time(Duration::from_secs(90)), "90 s");
        assert_eq!(time(Duration::from_secs(3600)), "60 min");
        assert_eq!(time(Duration::from_secs(7 * 86_400)), "7 days");
    }
}
