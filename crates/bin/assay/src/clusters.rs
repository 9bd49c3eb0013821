//! The clusters that come with Assay, and cluster files.

use std::io;
use std::path::Path;

use anyhow::anyhow;
use assay_base::settings::suggest::or_did_you_mean;
use assay_cluster::simulate::{BaseFile, Experiment, read};

use crate::bundled::{Bundled, included};
use crate::exit::Failure;
use crate::output;

macro_rules! bundled {
    ($name:literal, $about:literal) => {
        included!("clusters", $name, ".toml", $about)
    };
}

pub const CLUSTERS: &[Bundled] = &[
    bundled!("appendix-d", "the testbed of Jones's study (2002), which the figures extend"),
    bundled!("figure-2", "its switch: empty files"),
    bundled!("figure-2-one-processor", "the same switch on one processor"),
    bundled!("figure-3", "files alone"),
    bundled!("figure-4", "80 % static, 20 % dynamic"),
    bundled!("figure-5", "60 % static, 40 % dynamic"),
    bundled!("figure-6", "processors and disk of a node, second by second"),
    bundled!("figure-7", "seven nodes that should be alike, each alone"),
    bundled!("figure-8", "the same on two nodes"),
    bundled!("figure-9", "two nodes of two processors, four of one"),
    bundled!("figure-10", "one, two and four nodes"),
    bundled!("locality", "files that do not fit one node's memory: LARD against CAP"),
    bundled!("beyond-ten", "the testbed's mix on 4 to 80 nodes"),
    bundled!("forwarding", "what each way to a node costs the switch: proxy, splicing, layer 4, hand-off"),
    bundled!("uneven", "fast and slow nodes, one of which fails: who copes?"),
];

/// The one that is called `name`.
pub fn find(name: &str) -> Option<&'static Bundled> {
    CLUSTERS.iter().find(|cluster| cluster.name == name)
}

/// Name and text of a cluster file.
pub fn source(named: &str) -> Result<(String, String), Failure> {
    if let Some(bundled) = find(named) {
        return Ok((bundled.name.to_owned(), bundled.text.to_owned()));
    }
    let path = Path::new(named);
    let text = assay_base::files::text(path, assay_base::files::SETTINGS_MAX).map_err(|error| {
        let failure = match error.kind() {
            io::ErrorKind::NotFound => {
                let meant = or_did_you_mean(named, CLUSTERS.iter().map(|cluster| cluster.name));
                anyhow!("there is no cluster file {named}{meant}")
            }
            _ => anyhow::Error::new(error).context(format!("cannot read the cluster {named}")),
        };
        Failure::usage(failure).hint("`assay simulate` lists those that come with Assay")
    })?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    Ok((stem, text))
}

/// Parses a cluster file. A file that it extends is named on standard error when it is not clear which one is meant.
pub fn experiment(named: &str, name: &str, text: &str) -> Result<Experiment, Failure> {
    let is_bundled = find(named).is_some();
    let folder = Path::new(named).parent().unwrap_or(Path::new(""));
    let resolver = |extended: &str| -> Result<BaseFile, Box<dyn std::error::Error>> {
        let found = extended_file(folder, extended)?;
        // Bundled files extend bundled files, wherever one is.
        if let Some(note) = passed_over(folder, extended).filter(|_| !is_bundled) {
            output::eprint(&note);
        }
        Ok(found)
    };
    let shown = if is_bundled { format!("{name}.toml") } else { named.to_owned() };
    read(&shown, text, &resolver).map_err(|mistake| Failure::usage(anyhow!("{mistake}")))
}

/// File that a file in `folder` extends: the bundled one of that name, or else a file beside it.
fn extended_file(folder: &Path, extended: &str) -> Result<BaseFile, String> {
    if let Some(bundled) = find(extended) {
        return Ok(BaseFile { name: format!("the bundled {extended}"), text: bundled.text.to_owned() });
    }
    let path = folder.join(extended);
    let text = assay_base::files::text(&path, assay_base::files::SETTINGS_MAX).map_err(|error| {
        format!("cannot read {}, and no bundled cluster has that name: {error}", path.display())
    })?;
    Ok(BaseFile { name: path.display().to_string(), text })
}

/// A note, where a file beside the one that extends a bundled cluster has that cluster's name and may have been meant.
fn passed_over(folder: &Path, extended: &str) -> Option<String> {
    find(extended)?;
    let beside = [extended.to_owned(), format!("{extended}.toml")];
    let file = beside.into_iter().find(|name| folder.join(name).is_file())?;
    let path = folder.join(&file);
    Some(format!(
        "note: extends: the bundled {extended} was read, and {} passed over; to read that, say extends = \"./{file}\"\n",
        path.display()
    ))
}
