//! What one launch of a group brings on average. Requests, hits, fill and bytes, from the mixes alone.

mod means;

use self::means::ContentMeans;
use crate::curve::Line;
use crate::expiry::RequestExpiry;
use crate::mix::{DirectMix, GroupMix, RequestMix};
use crate::model::{ContentIndex, Distribution, RobotGroup, Server, UserRun, Workload};
use crate::periods::SessionTable;
use crate::universe::UniverseOptions;

/// The averages of all groups and contents of a workload.
#[derive(Debug)]
pub(crate) struct Densities {
    pub(crate) groups: Vec<GroupDensity>,
    contents: Vec<ContentMeans>,
}

#[derive(Debug)]
pub(crate) struct GroupDensity {
    pub(crate) mix: GroupMix,
    pub(crate) count: u32,
    /// Requests per second and robot at load 1, on average over busy and idle periods; none for best effort.
    pub(crate) per_second: Option<f64>,
    pub(crate) private_share: f64,
    pub(crate) foreign_share: f64,
    /// Types of what the trace names, with the shares of its lines.
    foreign: Vec<DirectDensity>,
    /// Share of embedded objects that are fetched.
    fetched: f64,
    /// Mean number of requests that a connection serves.
    pub(crate) connection_use: f64,
    /// In the order of the mix's direct types.
    direct: Vec<DirectDensity>,
}

/// One type as a group requests it.
#[derive(Debug)]
struct DirectDensity {
    content: ContentIndex,
    share: f64,
    /// Share of requests that meet nothing on purpose but perhaps a redirection, and the share of those that
    /// would be redirected if all requests were special.
    plain: f64,
    redirected: f64,
    /// Bytes that a request for parts brings.
    range_bytes: f64,
    /// Share of revisits that look for a small object.
    size_preference: f64,
}

/// The objects that are requested directly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LaunchTarget {
    /// A direct type of the group, by its place in the mix.
    Direct(usize),
    /// A line of the trace.
    Trace,
}

/// Number and bytes of objects.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ObjectTotals {
    pub(crate) objects: f64,
    pub(crate) bytes: f64,
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

/// Averages of visits of one kind, first ones or revisits, of a type and what comes with it.
#[derive(Debug, Clone, Copy, Default)]
struct Visits {
    requests: f64,
    basic: f64,
    basic_bytes: f64,
    cachable: f64,
    cachable_bytes: f64,
    body_bytes: f64,
}

impl Densities {
    pub(crate) fn new(workload: &Workload, options: UniverseOptions) -> Self {
        let contents: Vec<_> =
            (0..workload.contents.len()).map(|c| ContentMeans::new(workload, c as ContentIndex)).collect();
        let groups =
            workload.robots.iter().map(|group| GroupDensity::new(workload, group, &contents, options));
        Self { groups: groups.collect(), contents }
    }

    /// Expected embedded objects per launch of a group.
    pub(crate) fn embedded(&self, group: usize, special: f64) -> f64 {
        let group = &self.groups[group];
        let of_type = |direct: &DirectMix| {
            let request = group.mix.request(direct.content);
            direct.share * request.carries_body(special) * self.contents[usize::from(direct.content)].embedded
        };
        let own = group.fetched * group.mix.direct.iter().map(of_type).sum::<f64>();
        if group.foreign_share > 0.0 { own * (1.0 - group.foreign_share) } else { own }
    }

    /// True when a group requests pages, so that request types change how many requests a launch brings.
    pub(crate) fn has_pages(&self, group: usize) -> bool {
        self.groups[group].mix.direct.iter().any(|d| self.contents[usize::from(d.content)].embedded > 0.0)
    }

    /// Recurrences of a group's types before the phase's factor.
    pub(crate) fn recurrences(&self, group: usize) -> impl Iterator<Item = f64> + '_ {
        let group = &self.groups[group];
        let foreign = (group.foreign_share > 0.0).then_some(group.mix.recurrence);
        group.mix.direct.iter().map(|direct| direct.recurrence).chain(foreign)
    }

    /// Mean objects and bytes of an object together with its embedded ones.
    pub(crate) fn with_embedded(&self, content: ContentIndex) -> ObjectTotals {
        let means = &self.contents[usize::from(content)];
        let size = |(content, share): &(ContentIndex, f64)| {
            share * self.contents[usize::from(*content)].embedded_size
        };
        let embedded: f64 = means.embedded_types.iter().map(size).sum();
        ObjectTotals { objects: 1.0 + means.embedded, bytes: means.size + means.embedded * embedded }
    }

    /// Mean size of what a line of the trace names.
    pub(crate) fn mean_line(&self) -> f64 {
        let lines = self.groups.iter().find(|group| group.foreign_share > 0.0).map(|group| &group.foreign);
        let size = |line: &DirectDensity| line.share * self.contents[usize::from(line.content)].embedded_size;
        lines.map_or(0.0, |lines| lines.iter().map(size).sum())
    }

    /// Averages per launch under these factors of recurrence and request types.
    pub(crate) fn per_launch(&self, group: usize, recurrence: f64, special: f64) -> PerLaunch {
        let density = &self.groups[group];
        let own = 1.0 - density.foreign_share;
        let mut sum = PerLaunch::default();
        for (index, direct) in density.mix.direct.iter().enumerate() {
            let revisit = revisit_share(direct.recurrence, recurrence);
            let share = if density.foreign_share > 0.0 { direct.share * own } else { direct.share };
            sum.add_mix(&self.visits(group, LaunchTarget::Direct(index), special), share, revisit);
        }
        if density.foreign_share > 0.0 {
            let revisit = revisit_share(density.mix.recurrence, recurrence);
            sum.add_mix(&self.visits(group, LaunchTarget::Trace, special), density.foreign_share, revisit);
        }
        sum
    }

    /// Change of the averages if a launch is a first visit instead of a revisit.
    pub(crate) fn new_for_revisit(&self, group: usize, target: LaunchTarget, special: f64) -> PerLaunch {
        let (new, revisit) = self.visits(group, target, special);
        PerLaunch {
            requests: new.requests - revisit.requests,
            basic: new.basic - revisit.basic,
            basic_bytes: new.basic_bytes - revisit.basic_bytes,
            fill: new.cachable,
            fill_bytes: new.cachable_bytes,
            hits: -revisit.cachable,
            hit_bytes: -revisit.cachable_bytes,
            body_bytes: new.body_bytes - revisit.body_bytes,
        }
    }

    /// Averages of a first visit and of a revisit.
    fn visits(&self, group: usize, target: LaunchTarget, special: f64) -> (Visits, Visits) {
        let density = &self.groups[group];
        match target {
            LaunchTarget::Direct(index) => self.visits_of(density, &density.direct[index], special),
            LaunchTarget::Trace => density.foreign.iter().fold(Default::default(), |sum, line| {
                let (new, revisit) = self.line_visits(density, line, special);
                (plus(sum.0, new, line.share), plus(sum.1, revisit, line.share))
            }),
        }
    }

    fn visits_of(&self, group: &GroupDensity, direct: &DirectDensity, special: f64) -> (Visits, Visits) {
        let means = &self.contents[usize::from(direct.content)];
        let request = group.mix.request(direct.content);
        let (new, mut revisit) = self.itself(direct, request, special, means.size);
        if let (true, Some(smallest)) = (direct.size_preference > 0.0, means.smallest) {
            let prefer = direct.size_preference;
            let basic = revisit.basic;
            let cachable = (1.0 - prefer) * means.cachable + prefer * smallest.cachable;
            let bytes = (1.0 - prefer) * means.cachable * means.size + prefer * smallest.size;
            // Where none is cachable, the pick stays.
            let left = (1.0 - cachable) * means.size;
            revisit.cachable = basic * cachable;
            revisit.cachable_bytes = basic * bytes;
            revisit.basic_bytes = basic * (bytes + left);
            revisit.body_bytes *= (bytes + left) / means.size.max(1.0);
        }
        let mut embedded = Visits::default();
        let children = group.fetched * request.carries_body(special) * means.embedded;
        for (content, share) in &means.embedded_types {
            let (means, request) = (&self.contents[usize::from(*content)], group.mix.request(*content));
            let requests = children * share;
            let basic = requests * request.child_basic(special) * direct.plain;
            embedded.add(&Visits {
                requests,
                basic,
                basic_bytes: basic * means.embedded_size,
                cachable: basic * means.cachable,
                cachable_bytes: basic * means.cachable * means.embedded_size,
                body_bytes: requests * request.child_carries_body(special) * means.embedded_size,
            });
        }
        (plus(new, embedded, 1.0), plus(revisit, embedded, 1.0))
    }

    fn line_visits(&self, group: &GroupDensity, line: &DirectDensity, special: f64) -> (Visits, Visits) {
        let means = &self.contents[usize::from(line.content)];
        self.itself(line, group.mix.request(line.content), special, means.embedded_size)
    }

    /// A first visit and a revisit without what is embedded.
    fn itself(
        &self,
        direct: &DirectDensity,
        request: &RequestMix,
        special: f64,
        size: f64,
    ) -> (Visits, Visits) {
        let cachable = self.contents[usize::from(direct.content)].cachable;
        let basic = request.basic(special) * direct.plain * (1.0 - direct.redirected * special);
        let whole = request.carries_body(special) + request.sends(special);
        let visits = Visits {
            requests: 1.0,
            basic,
            basic_bytes: basic * size,
            cachable: basic * cachable,
            cachable_bytes: basic * cachable * size,
            body_bytes: whole * size + request.range(special) * direct.range_bytes,
        };
        (visits, visits)
    }
}

fn plus(mut sum: Visits, more: Visits, share: f64) -> Visits {
    sum.requests += share * more.requests;
    sum.basic += share * more.basic;
    sum.basic_bytes += share * more.basic_bytes;
    sum.cachable += share * more.cachable;
    sum.cachable_bytes += share * more.cachable_bytes;
    sum.body_bytes += share * more.body_bytes;
    sum
}

impl Visits {
    fn add(&mut self, more: &Self) {
        *self = plus(*self, *more, 1.0);
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
    /// Adds visits of which a share are revisits.
    fn add_mix(&mut self, (new, revisit): &(Visits, Visits), share: f64, revisits: f64) {
        let (first, again) = (share * (1.0 - revisits), share * revisits);
        let both = |of: &dyn Fn(&Visits) -> f64| first * of(new) + again * of(revisit);
        self.requests += both(&|v| v.requests);
        self.basic += both(&|v| v.basic);
        self.basic_bytes += both(&|v| v.basic_bytes);
        self.fill += first * new.cachable;
        self.fill_bytes += first * new.cachable_bytes;
        self.hits += again * revisit.cachable;
        self.hit_bytes += again * revisit.cachable_bytes;
        self.body_bytes += both(&|v| v.body_bytes);
    }
}

impl GroupDensity {
    fn new(
        workload: &Workload,
        group: &RobotGroup,
        contents: &[ContentMeans],
        options: UniverseOptions,
    ) -> Self {
        let mix = GroupMix::new(workload, group);
        let session = group.session.as_ref().map(|session| SessionTable::new(session, group));
        let busy_share = session.map_or(1.0, |session| session.busy_share);
        let density = |part: &ContentShare<'_>| DirectDensity::new(workload, group, contents, &mix, part);
        let direct = |direct: &DirectMix| {
            density(&ContentShare {
                content: direct.content,
                share: direct.share,
                origins: &direct.origin_shares,
                size_preference: direct.popularity.size_preference,
            })
        };
        let line = |(content, share, origins): &ContentOrigins| {
            density(&ContentShare { content: *content, share: *share, origins, size_preference: 0.0 })
        };
        Self {
            count: group.count(),
            per_second: group.pace.per_second().map(|rate| rate * busy_share),
            private_share: if options.private_as_public { 0.0 } else { group.private_share },
            foreign_share: if workload.foreign.is_empty() { 0.0 } else { group.foreign_share },
            foreign: lines(workload).iter().map(line).collect(),
            fetched: group.embedded_recurrence,
            connection_use: group
                .connection_use_limit
                .as_ref()
                .map_or(1.0, Distribution::mean_count)
                .max(1.0),
            direct: mix.direct.iter().map(direct).collect(),
            mix,
        }
    }
}

/// A content type as a group requests it: its share, and the shares of the origins that hold it.
struct ContentShare<'a> {
    content: ContentIndex,
    share: f64,
    origins: &'a [(u16, f64)],
    /// Share of revisits that look for a small object.
    size_preference: f64,
}

/// A content type with its share, and the origins that hold it with theirs.
type ContentOrigins = (ContentIndex, f64, Vec<(u16, f64)>);

/// The content types of the lines of the trace.
fn lines(workload: &Workload) -> Vec<ContentOrigins> {
    let mut shares: Vec<Vec<(u16, f64)>> = vec![Vec::new(); workload.contents.len()];
    let mut lines = vec![0u32; workload.origins.len()];
    workload.foreign.iter().for_each(|url| lines[usize::from(url.origin)] += 1);
    for (origin, lines) in (0..=u16::MAX).zip(&lines).filter(|(_, lines)| **lines > 0) {
        let server = &workload.servers[usize::from(workload.origins[usize::from(origin)].server)];
        let types = crate::trace::types(server);
        let all = types.sum();
        let weight = f64::from(*lines) / workload.foreign.len() as f64;
        let add = |(content, share): (ContentIndex, f64)| {
            shares[usize::from(content)].push((origin, weight * share / all))
        };
        types.weights().for_each(add);
    }
    let of_type = |(content, origins): (usize, Vec<(u16, f64)>)| {
        (content as ContentIndex, origins.iter().map(|(_, share)| share).sum(), origins)
    };
    shares.into_iter().enumerate().filter(|(_, origins)| !origins.is_empty()).map(of_type).collect()
}

impl DirectDensity {
    fn new(
        workload: &Workload,
        group: &RobotGroup,
        contents: &[ContentMeans],
        mix: &GroupMix,
        part: &ContentShare<'_>,
    ) -> Self {
        let ContentShare { content, share, origins, size_preference } = *part;
        let (mut plain, mut redirected, mut sum) = (0.0, 0.0, 0.0);
        for (origin, weight) in origins {
            let server = &workload.servers[usize::from(workload.origins[usize::from(*origin)].server)];
            let here = plain_share(group, server);
            plain += weight * here;
            redirected += weight * here * server.redirect_share;
            sum += weight;
        }
        let (means, request) = (&contents[usize::from(content)], mix.request(content));
        let size = workload.contents[usize::from(content)].size_bytes.sampler();
        Self {
            content,
            share,
            redirected: if plain > 0.0 { redirected / plain } else { 0.0 },
            plain: if plain == sum { 1.0 } else { plain / sum },
            range_bytes: if request.range(1.0) > 0.0 {
                means.range_bytes(&request.ranges, &size)
            } else {
                0.0
            },
            size_preference,
        }
    }
}

/// Share of a group's requests to a kind of server that meet nothing on purpose, redirections aside.
fn plain_share(group: &RobotGroup, server: &Server) -> f64 {
    let faults = &server.faults;
    let faulty = faults.error_share + faults.reset_share + faults.slow_start_share + faults.slow_body_share;
    let anonymous = group.credentials.users.iter().map(UserRun::size).all(|users| users == 0);
    let refused = if anonymous { 1.0 } else { group.credentials.wrong_share };
    let demanded = server.authentication.as_ref().map_or(0.0, |demand| demand.share);
    let expired = RequestExpiry::new(server).map_or(0.0, |expiry| expiry.share());
    (1.0 - faulty)
        * (1.0 - expired)
        * (1.0 - server.abort_share)
        * (1.0 - group.abort_share)
        * (1.0 - demanded * refused)
}
