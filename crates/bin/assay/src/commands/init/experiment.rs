//! The text of an experiment to begin with.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::Context;
use assay_lab::Description;
use assay_lab::description::Store;

use crate::exit::Failure;

/// The built-in proxy, which needs no description.
const BUILTIN: &str = "builtin";
/// No proxy: what the others are worth.
const DIRECT: &str = "direct";
/// Room for the cache of each proxy. The same for all, and small enough to fill in a short run.
const MEMORY: &str = "64MB";
const DISK: &str = "256MB";

/// A proxy of the experiment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    name: String,
    /// The cache may be in memory.
    memory: bool,
    /// The cache may be on disk.
    disk: bool,
}

impl Chosen {
    fn described(description: &Description) -> Self {
        let stores = &description.capacity.stores;
        Self {
            name: description.name.clone(),
            memory: stores.contains(&Store::Memory),
            disk: stores.contains(&Store::Disk),
        }
    }
}

/// The proxies of these names.
pub fn choose(names: &[&str]) -> Result<Vec<Chosen>, String> {
    if names.is_empty() {
        return Err("name at least one proxy".into());
    }
    let one = |name: &&str| match *name {
        BUILTIN => Ok(Chosen { name: BUILTIN.into(), memory: true, disk: false }),
        DIRECT => Ok(Chosen { name: DIRECT.into(), memory: false, disk: false }),
        name => assay_lab::find(name, &[])
            .map(|found| Chosen::described(&found))
            .map_err(|error| error.to_string()),
    };
    names.iter().map(one).collect()
}

/// Names of the proxies that are installed; the built-in one, where there is no other.
pub fn installed() -> Result<Vec<String>, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot query the versions of proxies")
        .map_err(Failure::failed)?;
    let mut found = Vec::new();
    for description in assay_lab::described(&[]).into_iter().flatten() {
        if runtime.block_on(assay_lab::real_proxy::version(&description)).is_ok() {
            found.push(description.name);
        }
    }
    if found.is_empty() {
        found.push(BUILTIN.into());
    }
    Ok(found)
}

/// An experiment in the file `file`.
pub fn text(file: &str, workload: &str, proxies: &[Chosen], length: Duration) -> String {
    let length = format!("{}s", length.as_secs_f64());
    let names: Vec<&str> = proxies.iter().map(|proxy| proxy.name.as_str()).collect();
    let mut text = format!(
        "\
# Which proxy serves this workload best?
#
#   assay lab show {file}       what it would do, and for how long
#   assay lab {file}            run it, then compare
#   assay lab {file} --resume   go on after an interruption
#
# All fields: docs/reference/experiments.md
title = \"{} on {workload}\"

# What is requested: bundled workloads by name (`assay workloads`), or PGL files beside this one.
workloads = [\"{workload}\"]

# Runs of each combination. Differences get an interval from two on; three or more make it narrow.
repetitions = 3

# Each schedule is compressed to this length. Without this line, workloads run for their whole length.
rehearse = \"{length}\"

# What every run must show; `assay lab` ends with exit code 99 if one does not.
require = [\"errors == 0\"]
",
        names.join(", ")
    );
    for (index, proxy) in proxies.iter().enumerate() {
        text.push_str(match index {
            0 => "\n# The first proxy is the baseline, with which the others are compared.\n",
            _ => "\n",
        });
        let mut cache = String::new();
        if proxy.memory {
            cache += &format!("memory = \"{MEMORY}\"\n");
        }
        if proxy.memory || proxy.disk {
            cache += &format!("disk = \"{}\"\n", if proxy.disk { DISK } else { "0" });
        }
        // Writing to a string cannot fail.
        let _ = write!(text, "[[proxy]]\nname = \"{}\"\n{cache}", proxy.name);
    }
    text
}

#[cfg(test)]
mod tests {
    use assay_lab::experiment::cells::Experiment;

    use super::*;

    #[test]
    fn what_is_written_is_an_experiment_with_every_proxy_that_comes_with_assay() {
        let described = assay_lab::described(&[]).into_iter().flatten();
        let names: Vec<String> =
            [BUILTIN, DIRECT].map(str::to_owned).into_iter().chain(described.map(|one| one.name)).collect();
        let proxies = choose(&names.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
        let text = text("mine.toml", "site", &proxies, Duration::from_secs(90));
        let experiment = Experiment::read("mine.toml", "mine", &text).unwrap();
        assert_eq!(experiment.subjects.len(), names.len());
        assert_eq!(experiment.rehearse, Some(Duration::from_secs(90)));
        assert_eq!(experiment.repetitions, 3);
    }

    #[test]
    fn names_that_are_none_are_refused() {
        assert!(choose(&["no-such-proxy"]).is_err() && choose(&[]).is_err());
    }
}
