//! The lines of one request, of all caches, put together with what its robot saw of it. A pure function of both.

use std::collections::BTreeMap;

use assay_logs::class::Class;
use assay_measurement::histogram::Histogram;
use assay_measurement::outcome::Outcome;
use assay_measurement::xact::XactRow;
use assay_record::caches::{CacheLogs, Responses, Seen, Source, Traffic};
use assay_record::run::CacheInfo;
use assay_workload::XactId;

use super::lines::LogLine;

/// Graph of the caches that send requests to each other.
#[derive(Debug, Clone, Default)]
pub(crate) struct PeerGraph {
    names: Vec<String>,
    /// For each cache: places of its peers, and whether they are parents.
    peers: Vec<Vec<(u16, bool)>>,
}

impl PeerGraph {
    /// Graph of a topology; of one proxy that stands alone when there is none.
    pub(crate) fn of(caches: &[CacheInfo]) -> Self {
        if caches.is_empty() {
            return Self { names: vec![String::new()], peers: vec![Vec::new()] };
        }
        let names: Vec<String> = caches.iter().map(|cache| cache.name.clone()).collect();
        let place = |name: &str| names.iter().position(|other| other == name);
        let peers = caches.iter().map(|cache| {
            let known = cache.peers.iter();
            known.filter_map(|peer| Some((place(&peer.name)? as u16, peer.relation == "parent"))).collect()
        });
        Self { peers: peers.collect(), names }
    }

    fn name(&self, place: u16) -> String {
        self.names.get(usize::from(place)).cloned().unwrap_or_default()
    }

    /// Whether `to` is a parent of `from`; none: it is no peer of it.
    fn is_parent(&self, from: u16, to: u16) -> Option<bool> {
        let peers = self.peers.get(usize::from(from))?;
        peers.iter().find(|(place, _)| *place == to).map(|(_, parent)| *parent)
    }
}

/// Everything that a row of responses has in common.
type ResponseKey = (u16, u16, bool, Seen, Source);
/// The same of traffic: from, to, phase.
type TrafficKey = (u16, u16, u16);

#[derive(Default)]
struct ResponseSums {
    requests: u64,
    other_status: u64,
    body_bytes: u64,
    logged_bytes: u64,
    response: Histogram,
    duration: Histogram,
}

#[derive(Default)]
struct JoinTables {
    responses: BTreeMap<ResponseKey, ResponseSums>,
    traffic: BTreeMap<TrafficKey, (Traffic, Histogram)>,
}

/// Puts lines and xacts together, request by request. A robot's cache is at `own[robot]`; the first, where that is empty.
pub(crate) fn join(
    logs: &mut CacheLogs,
    circle: &PeerGraph,
    own: &[u16],
    mut lines: Vec<LogLine>,
    xacts: Vec<XactRow>,
) {
    // Stable: lines of one request at one cache stay in the order in which they were written.
    lines.sort_by_key(|line| (line.xact, line.cache));
    let mut xacts: Vec<XactRow> = xacts.into_iter().filter(|xact| xact.sent_us.is_some()).collect();
    xacts.sort_by_key(id);
    let mut xacts = xacts.iter().peekable();
    let mut tables = JoinTables::default();
    for group in lines.chunk_by(|one, other| one.xact == other.xact) {
        let xact = group[0].xact;
        while let Some(unlogged) = xacts.next_if(|row| id(row) < xact) {
            tables.request(circle, own, &[], Some(unlogged), logs);
        }
        let row = xacts.next_if(|row| id(row) == xact);
        tables.request(circle, own, group, row, logs);
    }
    for unlogged in xacts {
        tables.request(circle, own, &[], Some(unlogged), logs);
    }
    tables.write(circle, logs);
}

fn id(row: &XactRow) -> XactId {
    XactId { robot: row.robot, number: row.number, place: row.place }
}

impl JoinTables {
    /// One request: the lines that all caches have of it, and the robot's.
    fn request(
        &mut self,
        circle: &PeerGraph,
        own: &[u16],
        group: &[LogLine],
        row: Option<&XactRow>,
        logs: &mut CacheLogs,
    ) {
        let robot = row.map(|row| row.robot).or(group.first().map(|line| line.xact.robot));
        let Some(robot) = robot else { return };
        let home = own.get(robot as usize).copied().unwrap_or(0);
        let mut at_home = group.iter().filter(|line| line.cache == home).rev();
        // Of several, the last is the one whose response the robot has.
        let line = at_home.next();
        let again = at_home.count() as u64;
        if let Some(log) = logs.logs.get_mut(usize::from(home)) {
            log.again += again;
        }
        for other in group.iter().filter(|line| line.cache != home) {
            self.requested(circle, home, group, other);
        }
        let unread = logs.logs.get(usize::from(home)).is_some_and(|log| !log.unread.is_empty());
        if line.is_none() && (row.is_none() || unread) {
            return;
        }
        let source = line.map_or(Source::Unlogged, |line| source(circle, home, line, group));
        let seen = row.map_or(if logs.joined { Seen::Nothing } else { Seen::Unknown }, seen);
        let phase = row.map(|row| row.phase).or(line.map(|line| line.phase)).unwrap_or_default();
        let is_basic = match (row, line) {
            (Some(row), _) => row.method == "GET" && row.request_type == "basic",
            (None, line) => line.is_some_and(|line| line.is_basic),
        };
        let sums = self.responses.entry((home, phase, is_basic, seen, source)).or_default();
        sums.requests += 1;
        if let Some(line) = line {
            sums.logged_bytes += line.bytes;
            line.duration_us.into_iter().for_each(|us| sums.duration.record(us));
        }
        let Some(row) = row else { return };
        sums.body_bytes += row.body_bytes;
        sums.other_status +=
            u64::from(row.status.zip(line).is_some_and(|(status, line)| status != line.status));
        if row.error.is_none()
            && let Some(last) = row.last_byte_us
        {
            sums.response.record(u64::try_from(last - row.due_us).unwrap_or(0));
        }
    }

    /// A request of a cache to another.
    fn requested(&mut self, circle: &PeerGraph, home: u16, group: &[LogLine], line: &LogLine) {
        let may_query = |from: u16| circle.is_parent(from, line.cache).is_some();
        // Where parents have parents, it is the child that has the request too.
        let on_the_way =
            group.iter().map(|other| other.cache).find(|&place| place != line.cache && may_query(place));
        let from = if may_query(home) { home } else { on_the_way.unwrap_or(home) };
        let is_parent = circle.is_parent(from, line.cache).unwrap_or(true);
        let (sums, duration) = self.traffic.entry((from, line.cache, line.phase)).or_default();
        sums.requests += 1;
        sums.hits += u64::from(is_store_hit(line));
        sums.false_hits += u64::from(!is_parent && is_refusal(line));
        sums.bytes += line.bytes;
        line.duration_us.into_iter().for_each(|us| duration.record(us));
    }

    fn write(self, circle: &PeerGraph, logs: &mut CacheLogs) {
        let responses =
            self.responses.into_iter().map(|((cache, phase, basic, seen, source), sums)| Responses {
                cache: circle.name(cache),
                phase,
                basic,
                seen,
                source,
                requests: sums.requests,
                other_status: sums.other_status,
                body_bytes: sums.body_bytes,
                logged_bytes: sums.logged_bytes,
                response: sums.response.to_sparse(),
                duration: sums.duration.to_sparse(),
            });
        logs.responses = responses.collect();
        let traffic = self.traffic.into_iter().map(|((from, to, phase), (sums, duration))| Traffic {
            from: circle.name(from),
            to: circle.name(to),
            relation: match circle.is_parent(from, to) {
                Some(false) => "sibling".into(),
                Some(true) | None => "parent".into(),
            },
            phase,
            duration: duration.to_sparse(),
            ..sums
        });
        logs.traffic = traffic.collect();
    }
}

/// Outcome of a request, as its robot saw it.
fn seen(row: &XactRow) -> Seen {
    if row.error.is_some() || row.last_byte_us.is_none() {
        return Seen::Failed;
    }
    let is_basic = row.method == "GET" && row.request_type == "basic";
    match row.outcome.filter(|_| is_basic) {
        Some(Outcome::Hit) => Seen::Hit,
        Some(Outcome::Collapsed) => Seen::Collapsed,
        Some(Outcome::Revalidated) => Seen::Revalidated,
        Some(Outcome::Miss) => Seen::Miss,
        None => Seen::Other,
    }
}

/// Source of the response: as its own cache says, and, where that sent a request to others, as these say. What a child
/// cannot know of its parent (Squid says FIRST_PARENT_MISS whatever the parent had), the parent's own line tells.
fn source(circle: &PeerGraph, home: u16, line: &LogLine, group: &[LogLine]) -> Source {
    let others = || group.iter().filter(|other| other.cache != home);
    let is_sibling = |other: &&LogLine| circle.is_parent(home, other.cache) == Some(false);
    let requested = match line.class {
        Class::MemoryHit | Class::DiskHit | Class::Hit => return Source::Local,
        Class::Joined => return Source::Joined,
        Class::Revalidated => return Source::Revalidated,
        Class::Error | Class::Denied => return Source::Failed,
        Class::SiblingHit => Source::Sibling,
        Class::ParentHit => Source::Parent,
        Class::Miss => Source::Origin,
        _ => Source::Unsaid,
    };
    if others().filter(is_sibling).any(|other| is_store_hit(other) || other.class == Class::Revalidated) {
        return Source::Sibling;
    }
    let mut parents = others().filter(|other| !is_sibling(other)).peekable();
    if parents.peek().is_none() {
        return requested;
    }
    if parents.any(is_store_hit) { Source::Parent } else { Source::ThroughParent }
}

fn is_store_hit(line: &LogLine) -> bool {
    line.class.is_local_hit() && line.status < 500
}

/// A sibling that has nothing (any more) says so with 504.
fn is_refusal(line: &LogLine) -> bool {
    line.status == 504
}

#[cfg(test)]
mod tests {
    use assay_record::run::PeerInfo;

    use super::*;

    fn cache(name: &str, peers: &[(&str, &str)]) -> CacheInfo {
        let peer = |&(name, relation): &(&str, &str)| PeerInfo {
            name: name.into(),
            relation: relation.into(),
            ..PeerInfo::default()
        };
        CacheInfo { name: name.into(), peers: peers.iter().map(peer).collect(), ..CacheInfo::default() }
    }

    /// Two siblings under a parent.
    fn circle() -> PeerGraph {
        PeerGraph::of(&[
            cache("top", &[]),
            cache("a", &[("b", "sibling"), ("top", "parent")]),
            cache("b", &[("a", "sibling"), ("top", "parent")]),
        ])
    }

    const TOP: u16 = 0;
    const A: u16 = 1;
    const B: u16 = 2;

    fn line(number: u64, cache: u16, class: Class, status: u16) -> LogLine {
        let xact = XactId { robot: 0, number, place: 0 };
        LogLine { xact, phase: 1, is_basic: true, cache, class, status, bytes: 100, duration_us: Some(7) }
    }

    fn xact(number: u64, outcome: Option<Outcome>, status: u16) -> XactRow {
        XactRow {
            robot: 0,
            number,
            place: 0,
            phase: 1,
            method: "GET",
            request_type: "basic",
            object: 0,
            content: 0,
            cachable: true,
            revisit: true,
            due_us: 10,
            ready_us: Some(10),
            sent_us: Some(10),
            connected_us: None,
            secured_us: None,
            first_byte_us: Some(20),
            last_byte_us: Some(30),
            outcome,
            error: None,
            status: Some(status),
            body_bytes: 90,
            connection: Some(0),
            fault: None,
            fault_met: false,
        }
    }

    fn joined(lines: Vec<LogLine>, xacts: Vec<XactRow>) -> CacheLogs {
        let log = |cache: &str| assay_record::caches::LogRead { cache: cache.into(), ..Default::default() };
        let mut logs =
            CacheLogs { joined: true, logs: ["top", "a", "b"].map(log).to_vec(), ..CacheLogs::default() };
        join(&mut logs, &circle(), &[A], lines, xacts);
        logs
    }

    fn rows(logs: &CacheLogs) -> Vec<(Seen, Source, u64)> {
        logs.responses.iter().map(|row| (row.seen, row.source, row.requests)).collect()
    }

    #[test]
    fn the_line_of_the_queried_cache_tells_who_had_it() {
        let lines = vec![
            // Its own store.
            line(1, A, Class::MemoryHit, 200),
            // The sibling's.
            line(2, A, Class::SiblingHit, 200),
            line(2, B, Class::DiskHit, 200),
            // The parent's, though the child calls it a miss.
            line(3, A, Class::Miss, 200),
            line(3, TOP, Class::DiskHit, 200),
            // A parent that had to fetch it, after a sibling that had it no more.
            line(4, A, Class::ParentHit, 200),
            line(4, B, Class::Error, 504),
            line(4, TOP, Class::Miss, 200),
            // The origin's.
            line(5, A, Class::Miss, 200),
        ];
        let xacts = (1..=5).map(|number| {
            let outcome = if number < 4 { Outcome::Hit } else { Outcome::Miss };
            xact(number, Some(outcome), 200)
        });
        let logs = joined(lines, xacts.collect());
        let mut found = rows(&logs);
        found.sort();
        assert_eq!(
            found,
            [
                (Seen::Hit, Source::Local, 1),
                (Seen::Hit, Source::Sibling, 1),
                (Seen::Hit, Source::Parent, 1),
                (Seen::Miss, Source::ThroughParent, 1),
                (Seen::Miss, Source::Origin, 1),
            ]
        );
        let edge = |to: &str| logs.traffic.iter().find(|row| row.from == "a" && row.to == to).unwrap();
        assert_eq!((edge("b").requests, edge("b").hits, edge("b").false_hits), (2, 1, 1));
        assert_eq!((edge("top").requests, edge("top").hits, edge("top").relation.as_str()), (2, 1, "parent"));
        assert!(logs.responses.iter().all(|row| row.response.sum_us == 20 && row.duration.sum_us == 7));
    }

    #[test]
    fn what_only_one_side_has_is_not_lost() {
        let mut unsent = xact(9, None, 200);
        unsent.sent_us = None;
        let lines = vec![
            line(1, A, Class::Hit, 200),
            // Sent twice: a connection was closed under it.
            line(2, A, Class::Error, 0),
            line(2, A, Class::Hit, 304),
            line(4, B, Class::Hit, 200),
        ];
        let logs =
            joined(lines, vec![xact(0, Some(Outcome::Miss), 200), xact(2, Some(Outcome::Hit), 200), unsent]);
        let mut found = rows(&logs);
        found.sort();
        assert_eq!(
            found,
            [
                (Seen::Hit, Source::Local, 1),
                (Seen::Miss, Source::Unlogged, 1),
                (Seen::Nothing, Source::Local, 1)
            ]
        );
        assert_eq!(logs.logs[1].again, 1);
        assert_eq!(logs.responses.iter().map(|row| row.other_status).sum::<u64>(), 1);
        assert_eq!(logs.traffic.len(), 1);
    }

    #[test]
    fn one_proxy_that_stands_alone_gets_all_requests() {
        let mut logs = CacheLogs { logs: vec![Default::default()], ..CacheLogs::default() };
        let xact = XactId { robot: 7, number: 1, place: 0 };
        let line = LogLine { xact, ..line(1, 0, Class::Hit, 200) };
        join(&mut logs, &PeerGraph::of(&[]), &[], vec![line], Vec::new());
        assert_eq!(rows(&logs), [(Seen::Unknown, Source::Local, 1)]);
    }
}
