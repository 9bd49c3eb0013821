//! What a file or a name is that was given where something else was expected, and the command that takes it.

use std::path::Path;

use anyhow::anyhow;
use assay_base::settings::{Fields, Source};

use crate::exit::Failure;
use crate::{bundled, clusters, experiments};

/// Something that a command takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// PGL.
    Workload,
    /// Runs to be compared.
    Experiment,
    /// Nodes behind a switch.
    Cluster,
    /// The configuration of the switch.
    Switch,
    /// Caches that work together.
    Topology,
    /// How a proxy is started.
    Proxy,
}

/// A kind of TOML file is known by any of these keys.
const KEYS: [(Kind, &[&str]); 5] = [
    (Kind::Experiment, &["workloads", "workload", "condition"]),
    (Kind::Switch, &["listen", "server"]),
    (Kind::Topology, &["cache"]),
    (Kind::Cluster, &["extends", "cluster", "service", "mix", "node"]),
    (Kind::Proxy, &["modes", "package", "start"]),
];

/// What a file holds, or what is bundled under a name; none: nothing that is known.
pub fn of_named(named: &str) -> Option<Kind> {
    let path = Path::new(named);
    if !path.is_file() {
        let bundled = [
            (Kind::Workload, bundled::find(named).is_some()),
            (Kind::Experiment, experiments::find(named).is_some()),
            (Kind::Cluster, clusters::find(named).is_some()),
        ];
        return bundled.into_iter().find(|(_, found)| *found && !path.exists()).map(|(kind, _)| kind);
    }
    if ends_with(path, "pg") {
        return Some(Kind::Workload);
    }
    is_toml(named)
        .then(|| assay_base::files::text(path, assay_base::files::SETTINGS_MAX).ok())
        .flatten()
        .and_then(|text| of_text(&text))
}

/// A file that its name says to be TOML, whatever is in it.
pub fn is_toml(named: &str) -> bool {
    let path = Path::new(named);
    path.is_file() && ends_with(path, "toml")
}

fn ends_with(path: &Path, ending: &str) -> bool {
    path.extension().is_some_and(|own| own.eq_ignore_ascii_case(ending))
}

/// What a TOML file holds.
fn of_text(text: &str) -> Option<Kind> {
    let source = Source { file: "", text };
    let table = source.parse().ok()?;
    let fields = Fields::whole(source, "a file", &table);
    let (kind, _) = KEYS.into_iter().find(|(_, keys)| keys.iter().any(|key| fields.get(key).is_some()))?;
    Some(kind)
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Workload => "a workload",
            Self::Experiment => "an experiment",
            Self::Cluster => "a cluster",
            Self::Switch => "a configuration of the switch",
            Self::Topology => "a topology of caches",
            Self::Proxy => "the description of a proxy",
        }
    }

    /// The command line that takes it.
    fn command(self, named: &str) -> String {
        match self {
            Self::Workload => format!("assay run {named}"),
            Self::Experiment => format!("assay lab {named}"),
            Self::Cluster => format!("assay simulate {named}"),
            Self::Switch => format!("assay switch {named}"),
            Self::Topology => format!("assay run WORKLOAD --topology {named}"),
            Self::Proxy => format!("assay run WORKLOAD --proxy {named}"),
        }
    }

    /// The refusal of something of this kind where `expected` was needed.
    pub fn refused(self, named: &str, expected: Self) -> Failure {
        let failure = Failure::usage(anyhow!("{named} is {}, and not {}", self.name(), expected.name()));
        let also = match self {
            Self::Cluster => format!("; assay cluster {named} starts its nodes"),
            _ => String::new(),
        };
        failure.hint(format!("type: {}{also}", self.command(named)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_tree_is_taken_for_what_it_is() {
        let top = concat!(env!("CARGO_MANIFEST_DIR"), "/../../..");
        for (directory, kind) in
            [("experiments", Kind::Experiment), ("clusters", Kind::Cluster), ("proxies", Kind::Proxy)]
        {
            for entry in std::fs::read_dir(format!("{top}/{directory}")).unwrap() {
                let path = entry.unwrap().path();
                let is_toml = path.extension().is_some_and(|ending| ending == "toml");
                if path.is_file() && is_toml {
                    assert_eq!(of_named(path.to_str().unwrap()), Some(kind), "{}", path.display());
                }
            }
        }
        assert_eq!(of_named(&format!("{top}/workloads/demo.pg")), Some(Kind::Workload));
        assert_eq!(of_text("listen = \"127.0.0.1:80\"\n[[class]]\nservers = []\n"), Some(Kind::Switch));
        assert_eq!(of_text("[[cache]]\nname = \"a\"\n"), Some(Kind::Topology));
        assert_eq!((of_text("title = \"x\""), of_text("= no")), (None, None));
    }

    #[test]
    fn names_of_what_is_bundled_are_known_too() {
        assert_eq!(of_named("demo"), Some(Kind::Workload));
        assert_eq!(of_named("six-proxies"), Some(Kind::Experiment));
        assert_eq!(of_named("locality"), Some(Kind::Cluster));
        assert_eq!(of_named("nothing"), None);
    }
}
