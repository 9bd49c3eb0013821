//! Whether a workload can be run at all. Checks that everything it names exists and that numbers make sense, so that the
//! rest of the crate need not.

use crate::model::{
    BodySource, BodySpec, ClientBehaviour, Content, ContentIndex, Expectation, Faults, FileSetIndex,
    ForeignUrl, HeaderRule, LifeCycle, OriginIndex, Pace, Popularity, PopularityLaw, RequestType, RobotGroup,
    Server, Session, Weighted, Workload,
};
use crate::object::Space;

/// A workload that cannot be run: where, and why.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum UniverseError {
    /// There are no robots.
    #[error("the workload has no robots; use() at least one Robot that has addresses")]
    NoRobots,
    /// There are robots without origins.
    #[error("robots {kind:?} see no origins; give them `origins`")]
    NoOrigins { kind: String },
    /// An origin that robots see has nothing for them.
    #[error(
        "server {kind:?} has no content that robots request directly; give it `direct_access` or `contents`"
    )]
    NothingToRequest { kind: String },
    /// A probability outside 0 to 1, a rate that is not positive, and the like.
    #[error("{what} is {seen}; it must be {wanted}")]
    Number {
        what: String,
        seen: f64,
        /// Allowed values.
        wanted: &'static str,
    },
    /// Something is named that does not exist.
    #[error("{what} number {index} is named, but there are {count}")]
    Missing {
        what: &'static str,
        /// The index that was named.
        index: usize,
        count: usize,
    },
    /// Files were given that are not the workload's.
    #[error("the workload has {wanted} {what}, but {seen} were given; read them as the workload lists them")]
    Files {
        what: String,
        /// Number given.
        seen: usize,
        /// Number in the workload.
        wanted: usize,
    },
    /// A file is not what it was when the workload was compiled.
    #[error(
        "{} has changed since the workload was compiled; compile it again",
        assay_base::quote::line::path(path)
    )]
    FileChanged { path: std::path::PathBuf },
    /// Requests of some kind, without what they need.
    #[error("{what}, but {missing}")]
    Lacks {
        /// The kind of request, and the robots that send it.
        what: String,
        /// Missing setting.
        missing: &'static str,
    },
    /// More of something than ids have room for.
    #[error("the workload has {count} {what}; at most {most} are possible")]
    TooMany { what: &'static str, count: u64, most: u64 },
}

/// Phases are numbered in 16 bits, and so are contents and origins.
const MOST_INDEXED: usize = 1 << 16;

pub(crate) fn validate(workload: &Workload) -> Result<(), UniverseError> {
    let robots: u64 = workload.robots.iter().flat_map(|g| &g.addresses).map(|a| u64::from(a.count)).sum();
    if robots == 0 {
        return Err(UniverseError::NoRobots);
    }
    limit("robots", robots, u64::from(u32::MAX))?;
    limit("content types", workload.contents.len() as u64, MOST_INDEXED as u64)?;
    limit("origins", workload.origins.len() as u64, MOST_INDEXED as u64)?;
    limit("phases", workload.schedule.phases.len() as u64, MOST_INDEXED as u64)?;
    workload.contents.iter().try_for_each(|c| content(c, workload))?;
    workload.servers.iter().try_for_each(|s| server(s, workload))?;
    for origin in &workload.origins {
        exists("server", usize::from(origin.server), workload.servers.len())?;
    }
    limit("URLs in its traces", workload.foreign.len() as u64, u64::from(u32::MAX))?;
    workload.foreign.iter().try_for_each(|url| foreign(url, workload))?;
    for origin in workload.substitutes.iter().flatten() {
        exists("origin", usize::from(*origin), workload.origins.len())?;
    }
    workload.robots.iter().try_for_each(|g| group(g, workload))
}

fn content(content: &Content, workload: &Workload) -> Result<(), UniverseError> {
    let name = |field: &str| format!("`{field}` of content {:?}", content.kind);
    probability(content.cachable, || name("cachable"))?;
    probability(content.checksum, || name("checksum"))?;
    if let Some(LifeCycle { variance, with_last_modified, .. }) = &content.life_cycle {
        probability(*variance, || name("obj_life_cycle.variance"))?;
        probability(*with_last_modified, || name("obj_life_cycle.with_lmt"))?;
    }
    if let Some(embedded) = &content.embedded {
        all_exist("content type", &embedded.contents, workload.contents.len())?;
    }
    headers(&content.headers, &name)?;
    body(content, workload, &name)?;
    let ClientBehaviour { recurrence, popularity, .. } = &content.behaviour;
    popularity.as_ref().map_or(Ok(()), |p| self::popularity(p, &name))?;
    recurrence.map_or(Ok(()), |p| probability(p, || name("client_behavior.recurrence")))
}

fn body(content: &Content, workload: &Workload, name: &dyn Fn(&str) -> String) -> Result<(), UniverseError> {
    let BodySpec { source, unique, injection, .. } = &content.body;
    unique.map_or(Ok(()), |share| probability(share, || name("unique")))?;
    match source {
        BodySource::Files(set) => {
            files(*set, workload, || name("document_root"))?;
            if content.embedded.is_some() {
                let what = format!("{} makes a page of whole files", name("may_contain"));
                let missing = "there is no place for links in them; use content_db or no embedded objects";
                return Err(UniverseError::Lacks { what, missing });
            }
        }
        BodySource::Database(set) => files(*set, workload, || name("content_db"))?,
        BodySource::Data | BodySource::Text | BodySource::Words => {}
    }
    let Some(injection) = injection else { return Ok(()) };
    probability(injection.share, || name("infect_prob"))?;
    injection.lines.map_or(Ok(()), |set| files(set, workload, || name("inject_db")))
}

/// A set of files that bodies are made of: it exists, and there is something in it.
fn files(set: FileSetIndex, workload: &Workload, what: impl Fn() -> String) -> Result<(), UniverseError> {
    exists("set of files", usize::from(set), workload.files.len())?;
    let files = &workload.files[usize::from(set)].files;
    if files.is_empty() || files.iter().any(|file| file.bytes == 0) {
        let missing = "there are no files, or empty ones; each needs at least a byte";
        return Err(UniverseError::Lacks { what: format!("{} names files", what()), missing });
    }
    Ok(())
}

fn headers(rules: &[HeaderRule], name: &dyn Fn(&str) -> String) -> Result<(), UniverseError> {
    rules.iter().try_for_each(|rule| probability(rule.probability, || name("http_headers")))
}

fn popularity(popularity: &Popularity, name: &dyn Fn(&str) -> String) -> Result<(), UniverseError> {
    probability(popularity.hot_set_fraction, || name("pop_model.hot_set_frac"))?;
    probability(popularity.hot_set_probability, || name("pop_model.hot_set_prob"))?;
    probability(popularity.size_preference, || name("pop_model.bhr_discrimination"))?;
    let number = |seen, wanted| UniverseError::Number { what: name("pop_model.pop_distr"), seen, wanted };
    match &popularity.law {
        PopularityLaw::Uniform => Ok(()),
        PopularityLaw::Zipf { skew } if skew.is_finite() && *skew >= 0.0 => Ok(()),
        PopularityLaw::Zipf { skew } => Err(number(*skew, "a skew of 0 or more")),
        PopularityLaw::Table(bins) => {
            let outside =
                bins.iter().flat_map(|bin| [bin.low, bin.high]).find(|age| !(0.0..=1.0).contains(age));
            let weight: f64 = bins.iter().map(|bin| bin.weight.max(0.0)).sum();
            match outside {
                Some(age) => Err(number(age, "a table of ages between 0 (the newest) and 1")),
                None if weight > 0.0 => Ok(()),
                None => Err(number(weight, "a table with positive weights")),
            }
        }
    }
}

fn server(server: &Server, workload: &Workload) -> Result<(), UniverseError> {
    let name = |field: &str| format!("`{field}` of server {:?}", server.kind);
    all_exist("content type", &server.contents, workload.contents.len())?;
    all_exist("content type", &server.direct_access, workload.contents.len())?;
    probability(server.redirect_share, || name("rep_types"))?;
    probability(server.body_allowed, || name("req_body_allowed"))?;
    probability(server.abort_share, || name("abort_prob"))?;
    headers(&server.headers, &name)?;
    server.popularity.as_ref().map_or(Ok(()), |p| popularity(p, &name))?;
    if let Some(cookies) = &server.cookies {
        probability(cookies.share, || name("cookie_set_prob"))?;
        probability(cookies.senders, || name("cookie_sender"))?;
    }
    if let Some(demand) = &server.authentication {
        probability(demand.share, || name("auth_prob"))?;
        if demand.schemes.is_empty() {
            let missing = "it offers no scheme; name Basic or Digest";
            return Err(UniverseError::Lacks { what: name("auth_schemes"), missing });
        }
    }
    faults(&server.faults, &name)
}

fn faults(faults: &Faults, name: &dyn Fn(&str) -> String) -> Result<(), UniverseError> {
    let shares = [
        ("error_prob", faults.error_share),
        ("reset_prob", faults.reset_share),
        ("slow_start_prob", faults.slow_start_share),
        ("slow_body_prob", faults.slow_body_share),
    ];
    shares.iter().try_for_each(|(field, share)| probability(*share, || name(field)))?;
    // A request meets one fault at most.
    probability(shares.iter().map(|(_, share)| share).sum(), || name("the sum of all fault shares"))?;
    if let Some(status) = faults.statuses.items().iter().map(|(s, _)| *s).find(|s| !(400..600).contains(s)) {
        let (what, seen) = (name("error_statuses"), f64::from(status));
        return Err(UniverseError::Number { what, seen, wanted: "an error status, 400 to 599" });
    }
    let positive = |value: f64| value.is_finite() && value > 0.0;
    if faults.slow_body_share > 0.0 && !positive(faults.slow_body_bytes_per_s) {
        let (what, seen) = (name("slow_body_bw"), faults.slow_body_bytes_per_s);
        return Err(UniverseError::Number { what, seen, wanted: "positive" });
    }
    if faults.delay_per_active_s.is_nan() || faults.delay_per_active_s < 0.0 {
        let (what, seen) = (name("delay_per_active"), faults.delay_per_active_s);
        return Err(UniverseError::Number { what, seen, wanted: "a time of 0 or more" });
    }
    Ok(())
}

fn group(group: &RobotGroup, workload: &Workload) -> Result<(), UniverseError> {
    let name = |field: &str| format!("`{field}` of robot {:?}", group.kind);
    all_exist("origin", &group.origins, workload.origins.len())?;
    all_exist("content type", &group.post_contents, workload.contents.len())?;
    all_exist("content type", &group.put_contents, workload.contents.len())?;
    for (field, share) in [
        ("recurrence", group.recurrence),
        ("embed_recur", group.embedded_recurrence),
        ("interests", group.private_share),
        ("interests", group.foreign_share),
        ("interests", group.private_share + group.foreign_share),
        ("req_body_recurrence", group.body_recurrence),
        ("cookie_sender", group.cookies.share),
        ("auth_error", group.credentials.wrong_share),
        ("abort_prob", group.abort_share),
        ("minimize_new_conn", group.substitution),
    ] {
        probability(share, || name(field))?;
    }
    if let Expectation::Sometimes(share) = group.expectation {
        probability(share, || name("req_body_pause_prob"))?;
    }
    headers(&group.headers, &name)?;
    group.popularity.as_ref().map_or(Ok(()), |p| popularity(p, &name))?;
    if group.count() == 0 {
        return Ok(());
    }
    pace(group, &name)?;
    ranges(group, workload)?;
    if group.foreign_share > 0.0 && workload.foreign.is_empty() {
        let what = format!("{} has a share of foreign", name("interests"));
        return Err(UniverseError::Lacks { what, missing: "there is no trace; give it foreign_trace" });
    }
    if group.foreign_share >= 1.0 { Ok(()) } else { sees(group, workload) }
}

/// Robots see origins, and those have something for them.
fn sees(group: &RobotGroup, workload: &Workload) -> Result<(), UniverseError> {
    let seen: Vec<OriginIndex> = positive(&group.origins).copied().collect();
    if seen.is_empty() {
        return Err(UniverseError::NoOrigins { kind: group.kind.clone() });
    }
    for origin in seen {
        let server = &workload.servers[usize::from(workload.origins[usize::from(origin)].server)];
        if positive(&server.direct_access).next().is_none() {
            return Err(UniverseError::NothingToRequest { kind: server.kind.clone() });
        }
    }
    Ok(())
}

fn pace(group: &RobotGroup, name: &dyn Fn(&str) -> String) -> Result<(), UniverseError> {
    let (field, seen, least) = match &group.pace {
        Pace::BestEffort => ("", 0.0, 0.0),
        Pace::Rate { per_second } => ("req_rate", *per_second, f64::MIN_POSITIVE),
        Pace::Renewal(between_s) => ("req_inter_arrival", between_s.mean(), f64::MIN_POSITIVE),
        Pace::Think(pause_s) => ("xact_think", pause_s.mean(), 0.0),
    };
    if !(seen.is_finite() && seen >= least) {
        let wanted = if least > 0.0 { "positive" } else { "a time of 0 or more" };
        return Err(UniverseError::Number { what: name(field), seen, wanted });
    }
    let Some(Session { busy, idle_s }) = &group.session else { return Ok(()) };
    let has_end = busy.duration.is_some_and(|d| !d.is_zero()) || busy.transactions.is_some_and(|n| n > 0);
    if !has_end {
        let missing = "it never ends; give the busy period a duration or a number of transactions";
        return Err(UniverseError::Lacks { what: name("session"), missing });
    }
    let seen = idle_s.mean();
    let what = name("session.idle_period_duration");
    if seen.is_finite() { Ok(()) } else { Err(UniverseError::Number { what, seen, wanted: "a time" }) }
}

/// Robots with Range requests have ranges to choose from.
fn ranges(group: &RobotGroup, workload: &Workload) -> Result<(), UniverseError> {
    let requests = |types: &Weighted<RequestType>| positive(types).any(|t| *t == RequestType::Range);
    for content in &workload.contents {
        let ClientBehaviour { request_types, ranges, .. } = &content.behaviour;
        let ranges = ranges.as_ref().unwrap_or(&group.ranges);
        if requests(request_types.as_ref().unwrap_or(&group.request_types))
            && positive(ranges).next().is_none()
        {
            return Err(UniverseError::Lacks {
                what: format!("robot {:?} may request parts of content {:?}", group.kind, content.kind),
                missing: "it does not say which; give it `ranges`",
            });
        }
    }
    Ok(())
}

/// A URL of a trace is at an origin that has objects to serve.
fn foreign(url: &ForeignUrl, workload: &Workload) -> Result<(), UniverseError> {
    exists("origin", usize::from(url.origin), workload.origins.len())?;
    let server = &workload.servers[usize::from(workload.origins[usize::from(url.origin)].server)];
    if positive(&server.direct_access).chain(positive(&server.contents)).next().is_none() {
        return Err(UniverseError::NothingToRequest { kind: server.kind.clone() });
    }
    Ok(())
}

fn positive<T>(weighted: &Weighted<T>) -> impl Iterator<Item = &T> {
    weighted.items().iter().filter(|(_, weight)| *weight > 0.0).map(|(item, _)| item)
}

fn probability(seen: f64, what: impl FnOnce() -> String) -> Result<(), UniverseError> {
    // Shares that add up to 1 may miss it by a rounding.
    if (0.0..=1.0 + 1e-9).contains(&seen) {
        Ok(())
    } else {
        Err(UniverseError::Number { what: what(), seen, wanted: "between 0 and 1" })
    }
}

fn all_exist(what: &'static str, weighted: &Weighted<u16>, count: usize) -> Result<(), UniverseError> {
    weighted.items().iter().try_for_each(|(index, _)| exists(what, usize::from(*index), count))
}

fn exists(what: &'static str, index: usize, count: usize) -> Result<(), UniverseError> {
    if index < count { Ok(()) } else { Err(UniverseError::Missing { what, index, count }) }
}

fn limit(what: &'static str, count: u64, most: u64) -> Result<(), UniverseError> {
    if count <= most { Ok(()) } else { Err(UniverseError::TooMany { what, count, most }) }
}

/// True when an id names only things that the workload has.
pub(crate) fn id_exists(workload: &Workload, robots: u32, id: &crate::object::ObjectId) -> bool {
    let page_exists = |page: ContentIndex| {
        workload.contents.get(usize::from(page)).is_some_and(|content| content.embedded.is_some())
    };
    let space_exists = match id.space {
        Space::Public => true,
        // Its path is the trace's own: see the module on paths.
        Space::Foreign => false,
        Space::Private(robot) | Space::RequestBody(robot) | Space::BestEffort(robot) => robot < robots,
        Space::InPublicPage { page } => page_exists(page),
        Space::InRobotPage { page, robot, kind } => {
            page_exists(page) && robot < robots && (1..=3).contains(&kind)
        }
    };
    space_exists
        && usize::from(id.content) < workload.contents.len()
        && usize::from(id.origin) < workload.origins.len()
}
