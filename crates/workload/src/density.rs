//! What does one launch of a group bring on average? Requests, hits, fill and bytes, from the mixes alone.

use crate::curve::Line;
use crate::mix::{DirectMix, GroupMix};
use crate::model::{Content, ContentIndex, Distribution, RobotGroup, Workload};
use crate::page::MOST_EMBEDDED;

/// The averages of all groups and contents of a workload.
#[derive(Debug)]
pub(crate) struct Densities {
    pub(crate) groups: Vec<GroupDensity>,
    contents: Vec<ContentMeans>,
}

/// One group.
#[derive(Debug)]
pub(crate) struct GroupDensity {
    mix: GroupMix,
    pub(crate) count: u32,
    /// Requests per second and robot at load 1; none for best effort.
    pub(crate) per_second: Option<f64>,
    /// Share of embedded objects that are fetched.
    fetched: f64,
    /// Mean number of requests that a connection serves.
    pub(crate) connection_use: f64,
}

#[derive(Debug)]
struct ContentMeans {
    size: f64,
    cachable: f64,
    embedded: f64,
    embedded_types: Vec<(ContentIndex, f64)>,
}

/// Averages per launch.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct PerLaunch {
    pub(crate) requests: f64,
    pub(crate) basic: f64,
    pub(crate) basic_bytes: f64,
    pub(crate) fill: f64,
    pub(crate) fill_bytes: f64,
    pub(crate) hits: f64,
    pub(crate) hit_bytes: f64,
    pub(crate) body_bytes: f64,
}

impl Densities {
    pub(crate) fn new(workload: &Workload) -> Self {
        Self {
            groups: workload.robots.iter().map(|group| GroupDensity::new(workload, group)).collect(),
            contents: workload.contents.iter().map(ContentMeans::new).collect(),
        }
    }

    /// Expected embedded objects per launch of a group.
    pub(crate) fn embedded(&self, group: usize, special: f64) -> f64 {
        let group = &self.groups[group];
        let of_type = |direct: &DirectMix| {
            let request = group.mix.request(direct.content);
            direct.share * request.carries_body(special) * self.contents[usize::from(direct.content)].embedded
        };
        group.fetched * group.mix.direct.iter().map(of_type).sum::<f64>()
    }

    /// True when a group asks for pages, so that request types change how many requests a launch brings.
    pub(crate) fn has_pages(&self, group: usize) -> bool {
        self.groups[group].mix.direct.iter().any(|d| self.contents[usize::from(d.content)].embedded > 0.0)
    }

    /// Recurrences of a group's types before the phase's factor.
    pub(crate) fn recurrences(&self, group: usize) -> impl Iterator<Item = f64> + '_ {
        self.groups[group].mix.direct.iter().map(|direct| direct.recurrence)
    }

    /// What a launch brings while recurrence and request types are under these factors.
    pub(crate) fn per_launch(&self, group: usize, recurrence: f64, special: f64) -> PerLaunch {
        let group = &self.groups[group];
        let mut sum = PerLaunch::default();
        for direct in &group.mix.direct {
            let (means, request) =
                (&self.contents[usize::from(direct.content)], group.mix.request(direct.content));
            let revisit = revisit_share(direct.recurrence, recurrence);
            let carries = request.carries_body(special);
            let answered = direct.share * (carries + request.sends(special)) * means.size;
            sum.add(direct.share, direct.share * request.basic(special), revisit, means, answered);
            let children = group.fetched * direct.share * carries * means.embedded;
            for (content, share) in &means.embedded_types {
                let (means, request) = (&self.contents[usize::from(*content)], group.mix.request(*content));
                let requests = children * share;
                let answered = requests * request.child_carries_body(special) * means.size;
                sum.add(requests, requests * request.child_basic(special), revisit, means, answered);
            }
        }
        sum
    }
}

/// The share of requests for a type that are revisits; a factor cannot make it more than all.
pub(crate) fn revisit_share(recurrence: f64, factor: f64) -> f64 {
    (recurrence * factor).min(1.0)
}

/// [`revisit_share`] along a line that has been cut where it reaches 1.
pub(crate) fn revisit_line(recurrence: f64, factor: Line) -> Line {
    factor.map(|f| revisit_share(recurrence, f))
}

impl PerLaunch {
    fn add(&mut self, requests: f64, basic: f64, revisit: f64, means: &ContentMeans, body_bytes: f64) {
        let (fill, hits) = (basic * means.cachable * (1.0 - revisit), basic * means.cachable * revisit);
        self.requests += requests;
        self.basic += basic;
        self.basic_bytes += basic * means.size;
        self.fill += fill;
        self.fill_bytes += fill * means.size;
        self.hits += hits;
        self.hit_bytes += hits * means.size;
        self.body_bytes += body_bytes;
    }
}

impl GroupDensity {
    fn new(workload: &Workload, group: &RobotGroup) -> Self {
        Self {
            mix: GroupMix::new(workload, group),
            count: group.count(),
            per_second: group.pace.per_second(),
            fetched: group.embedded_recurrence,
            connection_use: group
                .connection_use_limit
                .as_ref()
                .map_or(1.0, Distribution::mean_count)
                .max(1.0),
        }
    }
}

impl ContentMeans {
    fn new(content: &Content) -> Self {
        let embedded = content.embedded.as_ref();
        Self {
            size: content.size_bytes.mean_count(),
            cachable: content.cachable,
            embedded: embedded
                .filter(|e| e.contents.items().iter().any(|(_, share)| *share > 0.0))
                .map_or(0.0, |e| e.count.mean_count().min(f64::from(MOST_EMBEDDED))),
            embedded_types: embedded.map_or_else(Vec::new, |e| e.contents.items().to_vec()),
        }
    }
}
