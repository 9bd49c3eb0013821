//! Kinds of files and names that were given where another was expected, and the command that takes each.

use std::path::Path;

use anyhow::anyhow;
use assay_base::settings::{Fields, Source};

use crate::exit::Failure;
use crate::{bundled, clusters, experiments};

/// Something that a command takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
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
    /// Description of a proxy.
    Proxy,
}

/// A kind of TOML file is known by any of these keys.
const KEYS: [(FileKind, &[&str]); 5] = [
    (FileKind::Experiment, &["workloads", "workload", "condition"]),
    (FileKind::Switch, &["listen", "server"]),
    (FileKind::Topology, &["cache"]),
    (FileKind::Cluster, &["extends", "cluster", "service", "mix", "node"]),
    (FileKind::Proxy, &["modes", "package", "start"]),
];

/// Kind of a file, or of what is bundled under a name; none: it is not known.
pub fn from_name(named: &str) -> Option<FileKind> {
    let path = Path::new(named);
    if !path.is_file() {
        let bundled = [
            (FileKind::Workload, bundled::find(named).is_some()),
            (FileKind::Experiment, experiments::find(named).is_some()),
            (FileKind::Cluster, clusters::find(named).is_some()),
        ];
        return bundled.into_iter().find(|(_, found)| *found && !path.exists()).map(|(kind, _)| kind);
    }
    if ends_with(path, "pg") {
        return Some(FileKind::Workload);
    }
    is_toml(named)
        .then(|| assay_base::files::text(path, assay_base::files::SETTINGS_MAX).ok())
        .flatten()
        .and_then(|text| from_text(&text))
}

/// A file that its name says to be TOML, whatever is in it.
pub fn is_toml(named: &str) -> bool {
    let path = Path::new(named);
    path.is_file() && ends_with(path, "toml")
}

fn ends_with(path: &Path, ending: &str) -> bool {
    path.extension().is_some_and(|own| own.eq_ignore_ascii_case(ending))
}

/// Kind of a TOML file.
fn from_text(text: &str) -> Option<FileKind> {
    let source = Source { file: "", text };
    let table = source.parse().ok()?;
    let fields = Fields::whole(source, "a file", &table);
    let (kind, _) = KEYS.into_iter().find(|(_, keys)| keys.iter().any(|key| fields.get(key).is_some()))?;
    Some(kind)
}

impl FileKind {
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
        for (directory, kind) in [
            ("experiments", FileKind::Experiment),
            ("clusters", FileKind::Cluster),
            ("proxies", FileKind::Proxy),
        ] {
            for entry in std::fs::read_dir(format!("{top}/{directory}")).unwrap() {
                let path = entry.unwrap().path();
                let is_toml = path.extension().is_some_and(|ending| ending == "toml");
                if path.is_file() && is_toml {
                    assert_eq!(from_name(path.to_str().unwrap()), Some(kind), "{}", path.display());
                }
            }
        }
        assert_eq!(from_name(&format!("{top}/workloads/demo.pg")), Some(FileKind::Workload));
        assert_eq!(from_text("listen = \"127.0.0.1:80\"\n[[class]]\nservers = []\n"), Some(FileKind::Switch));
        assert_eq!(from_text("[[cache]]\nname = \"a\"\n"), Some(FileKind::Topology));
        assert_eq!((from_text("title = \"x\""), from_text("= no")), (None, None));
    }

    #[test]
    fn names_of_what_is_bundled_are_known_too() {
        assert_eq!(from_name("demo"), Some(FileKind::Workload));
        assert_eq!(from_name("six-proxies"), Some(FileKind::Experiment));
        assert_eq!(from_name("locality"), Some(FileKind::Cluster));
        assert_eq!(from_name("nothing"), None);
    }
}
