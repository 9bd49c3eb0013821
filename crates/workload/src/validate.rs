//! Can this workload be run at all? Checks that everything it names exists and that numbers make sense, so that
//! the rest of the crate need not.

use crate::model::{
    ClientBehaviour, Content, ContentIndex, LifeCycle, OriginIndex, Pace, RobotGroup, Server, Weighted,
    Workload,
};
use crate::object::Space;

/// A workload that cannot be run: where, and why.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum UniverseError {
    /// There is nobody to ask.
    #[error("the workload has no robots; use() at least one Robot that has addresses")]
    NoRobots,
    /// There is nobody to answer.
    #[error("robots {kind:?} see no origins; give them `origins`")]
    NoOrigins {
        /// The group's label.
        kind: String,
    },
    /// An origin that robots see has nothing for them.
    #[error(
        "server {kind:?} has no content that robots ask for directly; give it `direct_access` or `contents`"
    )]
    NothingToAskFor {
        /// The server's label.
        kind: String,
    },
    /// A probability outside 0 to 1, a rate that is not positive, and the like.
    #[error("{what} is {seen}; it must be {wanted}")]
    Number {
        /// Which number.
        what: String,
        /// Its value.
        seen: f64,
        /// What it may be.
        wanted: &'static str,
    },
    /// Something is named that does not exist.
    #[error("{what} number {index} is named, but there are {count}")]
    Missing {
        /// What kind of thing.
        what: &'static str,
        /// The index that was named.
        index: usize,
        /// How many there are.
        count: usize,
    },
    /// Files were given that are not the workload's.
    #[error("the workload has {wanted} {what}, but {seen} were given; read them as the workload lists them")]
    Files {
        /// What kind of thing.
        what: String,
        /// How many were given.
        seen: usize,
        /// How many there are.
        wanted: usize,
    },
    /// A file is not what it was when the workload was compiled.
    #[error("{} has changed since the workload was compiled; compile it again", path.display())]
    FileChanged {
        /// Where it is.
        path: std::path::PathBuf,
    },
    /// More of something than ids have room for.
    #[error("the workload has {count} {what}; at most {most} are possible")]
    TooMany {
        /// What kind of thing.
        what: &'static str,
        /// How many there are.
        count: u64,
        /// How many there may be.
        most: u64,
    },
}

/// Phases are numbered in 16 bits, and so are contents and origins.
const MOST_INDEXED: usize = 1 << 16;

/// Checks everything.
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
    let ClientBehaviour { recurrence, .. } = &content.behaviour;
    recurrence.map_or(Ok(()), |p| probability(p, || name("client_behavior.recurrence")))
}

fn server(server: &Server, workload: &Workload) -> Result<(), UniverseError> {
    all_exist("content type", &server.contents, workload.contents.len())?;
    all_exist("content type", &server.direct_access, workload.contents.len())
}

fn group(group: &RobotGroup, workload: &Workload) -> Result<(), UniverseError> {
    let name = |field: &str| format!("`{field}` of robot {:?}", group.kind);
    all_exist("origin", &group.origins, workload.origins.len())?;
    all_exist("content type", &group.post_contents, workload.contents.len())?;
    probability(group.recurrence, || name("recurrence"))?;
    probability(group.embedded_recurrence, || name("embed_recur"))?;
    probability(group.private_share, || name("private interest"))?;
    if group.count() == 0 {
        return Ok(());
    }
    if let Pace::Rate { per_second } = group.pace
        && !(per_second.is_finite() && per_second > 0.0)
    {
        return Err(UniverseError::Number { what: name("req_rate"), seen: per_second, wanted: "positive" });
    }
    let seen: Vec<OriginIndex> = positive(&group.origins).copied().collect();
    if seen.is_empty() {
        return Err(UniverseError::NoOrigins { kind: group.kind.clone() });
    }
    for origin in seen {
        let server = &workload.servers[usize::from(workload.origins[usize::from(origin)].server)];
        if positive(&server.direct_access).next().is_none() {
            return Err(UniverseError::NothingToAskFor { kind: server.kind.clone() });
        }
    }
    Ok(())
}

fn positive<T>(weighted: &Weighted<T>) -> impl Iterator<Item = &T> {
    weighted.items().iter().filter(|(_, weight)| *weight > 0.0).map(|(item, _)| item)
}

fn probability(seen: f64, what: impl FnOnce() -> String) -> Result<(), UniverseError> {
    if (0.0..=1.0).contains(&seen) {
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
        Space::Private(robot) | Space::Once(robot) | Space::BestEffort(robot) => robot < robots,
        Space::InPublicPage { page } => page_exists(page),
        Space::InRobotPage { page, robot, kind } => {
            page_exists(page) && robot < robots && (1..=3).contains(&kind)
        }
    };
    space_exists
        && usize::from(id.content) < workload.contents.len()
        && usize::from(id.origin) < workload.origins.len()
}
