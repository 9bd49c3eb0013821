//! The workloads that come with Assay, and what everything that comes with it is made of.

/// A workload, an experiment or a cluster that is compiled in.
#[derive(Debug, Clone, Copy)]
pub struct Bundled {
    /// Name on the command line.
    pub name: &'static str,
    /// Description in half a line.
    pub about: &'static str,
    /// The whole of it: PGL or TOML.
    pub text: &'static str,
}

/// Workloads of one kind.
#[derive(Debug, Clone, Copy)]
pub struct BundledGroup {
    /// Heading of the group.
    pub title: &'static str,
    /// In the order in which they are best read.
    pub workloads: &'static [Bundled],
}

/// Files of a folder of the source tree with this extension, compiled in.
macro_rules! included {
    ($folder:literal, $name:literal, $ending:literal, $about:expr) => {
        $crate::bundled::Bundled {
            name: $name,
            about: $about,
            text: include_str!(concat!("../../../../", $folder, "/", $name, $ending)),
        }
    };
}
pub(crate) use included;

macro_rules! bundled {
    ($name:literal, $about:literal) => {
        included!("workloads", $name, ".pg", $about)
    };
}

pub const SHELVES: &[BundledGroup] = &[
    BundledGroup {
        title: "To begin with",
        workloads: &[bundled!("demo", "half a minute of mixed content, to see how it works")],
    },
    BundledGroup {
        title: "A study of two caching proxies, 2012 (rehearse them: each takes hours)",
        workloads: &[
            bundled!(
                "best-effort",
                "mixed content as fast as the proxy responds: what is it capable of by nature?"
            ),
            bundled!("image", "pictures only, 400/s"),
            bundled!("html", "pages of HTML alone, 400/s"),
            bundled!("download", "files of 300 KB, 400/s, which is more than a gigabit"),
            bundled!("mixed", "pages, downloads, conditional requests and reloads, up to 1,600/s"),
        ],
    },
    BundledGroup {
        title: "Web Polygraph's, for reverse proxies",
        workloads: &[
            bundled!("webaxe-1", "a small site, nearly all of it requested before"),
            bundled!("webaxe-3", "the same with a site of 1 GB"),
            bundled!("webaxe-4", "the same with everything that PolyMix-4 has"),
        ],
    },
    BundledGroup {
        title: "Web Polygraph's, for forward proxies (--forward)",
        workloads: &[
            bundled!("polymix-1", "one kind of object, one constant load, an hour"),
            bundled!("polymix-2", "mixed content through two busy days"),
            bundled!("polymix-3", "the same with a full cache, a hot set and conditional requests"),
            bundled!("polymix-4", "the same with names, POST, HEAD, aborts and robots that come and go"),
            bundled!("datacomm-1", "PolyMix-1 for four hours over persistent connections"),
            bundled!("polyfill-2", "fills a cache twice"),
            bundled!("downtime-2", "how long does a proxy take to come back?"),
        ],
    },
    BundledGroup {
        title: "Web Polygraph's, for balancers",
        workloads: &[
            bundled!("srvlb-l4-4", "servers that all hold the same site"),
            bundled!("srvlb-l7-4", "servers that each hold one kind of file"),
            bundled!("nolb-l4-4", "without a balancer, for comparison (--direct)"),
        ],
    },
    BundledGroup {
        title: "WebStone's",
        workloads: &[
            bundled!("webstone", "its standard files, by clients that send requests without a pause"),
            bundled!("webstone-8020", "the same with programs, 80 to 20, by 2 to 20 clients in turn"),
        ],
    },
    BundledGroup {
        title: "Of today's web",
        workloads: &[
            bundled!("site", "heavy pages: pictures, scripts, styles and fonts, sent compressed"),
            bundled!(
                "api",
                "short-lived JSON, half of it for one client only, from an origin that fails now and then"
            ),
            bundled!("video", "segments of six seconds in four qualities, some in parts"),
        ],
    },
];

macro_rules! of_experiment {
    ($name:literal) => {
        included!("experiments", $name, ".pg", "a workload of a bundled experiment")
    };
}

/// Files that bundled experiments include. They are no workloads for others: their names say nothing alone.
const OF_EXPERIMENTS: &[Bundled] = &[
    of_experiment!("figure-3"),
    of_experiment!("policies"),
    of_experiment!("quarter-vs-eighth"),
    of_experiment!("siblings"),
];

/// Before the name of a file that is compiled in, where a bundled experiment names it.
pub const INSIDE: &str = "<bundled>/";

/// The workload that bundled experiments call `file`, which is beside them in the source tree.
pub fn of_experiments(file: &str) -> Option<&'static Bundled> {
    let name = file.strip_suffix(".pg")?;
    OF_EXPERIMENTS.iter().find(|workload| workload.name == name)
}

/// All of them in one row.
pub fn all() -> impl Iterator<Item = &'static Bundled> {
    SHELVES.iter().flat_map(|shelf| shelf.workloads)
}

/// The one that is called `name`, or that [`INSIDE`] and a file's name stand for.
pub fn find(name: &str) -> Option<&'static Bundled> {
    all().find(|workload| workload.name == name).or_else(|| of_experiments(name.strip_prefix(INSIDE)?))
}
