//! Which clusters come with Assay, and what does a cluster file say?

use std::path::Path;

use anyhow::anyhow;
use assay_simulate::{Experiment, read};

use crate::exit::Failure;

/// A cluster file that is compiled in.
#[derive(Debug, Clone, Copy)]
pub struct BundledCluster {
    /// What it is called on the command line.
    pub name: &'static str,
    /// What it is, in half a line.
    pub about: &'static str,
    /// The whole of it.
    pub text: &'static str,
}

macro_rules! bundled {
    ($name:literal, $about:literal) => {
        BundledCluster {
            name: $name,
            about: $about,
            text: include_str!(concat!("../../../clusters/", $name, ".toml")),
        }
    };
}

/// All of them.
pub const CLUSTERS: &[BundledCluster] = &[
    bundled!("appendix-d", "the testbed of Jones's study (2002), which the figures extend"),
    bundled!("figure-2", "its switch: empty files"),
    bundled!("figure-3", "files alone"),
    bundled!("figure-4", "80 % static, 20 % dynamic"),
    bundled!("figure-5", "60 % static, 40 % dynamic"),
    bundled!("figure-8", "the same on two nodes"),
    bundled!("figure-9", "two nodes of two processors, four of one"),
    bundled!("figure-10", "one, two and four nodes"),
    bundled!("locality", "files that do not fit one node's memory: LARD against CAP"),
    bundled!("beyond-ten", "the testbed's mix on 4 to 80 nodes"),
    bundled!("uneven", "fast and slow nodes, one of which fails: who copes?"),
];

/// The one that is called `name`.
pub fn find(name: &str) -> Option<&'static BundledCluster> {
    CLUSTERS.iter().find(|cluster| cluster.name == name)
}

/// What a cluster file is called, and what is in it.
pub fn source(named: &str) -> Result<(String, String), Failure> {
    if let Some(bundled) = find(named) {
        return Ok((bundled.name.to_owned(), bundled.text.to_owned()));
    }
    let path = Path::new(named);
    let text = std::fs::read_to_string(path).map_err(|error| {
        let failure = anyhow::Error::new(error).context(format!("cannot read the cluster {named}"));
        Failure::usage(failure).hint("`assay simulate` lists those that come with Assay")
    })?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    Ok((stem, text))
}

/// What it says.
pub fn experiment(named: &str, name: &str, text: &str) -> Result<Experiment, Failure> {
    let folder = Path::new(named).parent().unwrap_or(Path::new(""));
    // What a file extends is beside it, or comes with Assay.
    let resolver = |extended: &str| match find(extended) {
        Some(bundled) => Ok(bundled.text.to_owned()),
        None => {
            std::fs::read_to_string(folder.join(extended)).map_err(|error| format!("cannot read it: {error}"))
        }
    };
    let shown = if find(named).is_some() { format!("{name}.toml") } else { named.to_owned() };
    read(&shown, text, &resolver).map_err(|mistake| Failure::usage(anyhow!("{mistake}")))
}
