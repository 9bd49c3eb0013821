//! Which clusters come with Assay?

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
