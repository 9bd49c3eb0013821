//! Groups of robots.

use std::collections::BTreeSet;
use std::rc::Rc;

use assay_workload::model::{
    ContentIndex, Distribution, HttpVersion, MOST_ROBOTS, OriginIndex, Pace, Popularity, RobotGroup,
    ServerIndex, Weighted,
};

use super::{Builder, RobotSpans, active_slot};
use crate::diagnostic::{Code, Diagnostic};
use crate::source::Span;
use crate::value::{Record, Value};

#[derive(Clone, Copy, PartialEq)]
enum Interest {
    Public,
    Private,
    Foreign,
}

impl Builder<'_> {
    pub(super) fn add_robot(&mut self, record: &Record, span: Span) {
        let Some(addresses) = self.robot_addresses(record, span) else { return };
        if self.is_passive(record) {
            return;
        }
        self.warn_unsupported_fields(record);
        let interests = self.interests(record);
        let foreign_share = interest_share(&interests, Interest::Foreign);
        let origins = self.robot_origins(record, span, foreign_share >= 1.0);
        let reachable = self.reachable_contents(&origins);
        let popularity = self.popularity(record, span);
        let recurrence = self.recurrence(record, popularity.as_ref(), &reachable, span);
        let http_versions: Weighted<HttpVersion> = self.versions(record);
        // An empty array, as opposed to none, turns embedding off.
        let embeds = self.array(record, "container_tags").is_none_or(|(tags, _)| tags.count() > 0);
        let embedded = self.share(record, "embed_recur").unwrap_or(0.0);
        let group = RobotGroup {
            kind: self.text(record, "kind").unwrap_or_else(|| "robot".to_owned()),
            addresses,
            origins,
            proxies: self.robot_proxies(record),
            pace: self.pace(record),
            launch_window: self.duration(record, "launch_win", true),
            recurrence,
            embedded_recurrence: if embeds { embedded } else { 0.0 },
            popularity,
            private_share: interest_share(&interests, Interest::Private),
            foreign_share,
            headers: self.header_rules(record, "http_headers"),
            private_cache: self.integer(record, "private_cache_cap", 0).unwrap_or(0),
            cookies: self.cookie_keeping(record),
            credentials: self.credentials(record),
            session: self.session(record),
            abort_share: self.share(record, "abort_prob").unwrap_or(0.0),
            lifetime_s: self.distribution(record, "xact_lifetime"),
            substitution: self.share(record, "minimize_new_conn").unwrap_or(0.0),
            connection_use_limit: self.distribution(record, "pconn_use_lmt"),
            idle_timeout: self.duration(record, "idle_pconn_tout", false),
            open_connection_limit: self.integer(record, "open_conn_lmt", 1),
            waiting_limit: self.integer(record, "wait_xact_lmt", 0),
            pipeline_depth: self.pipeline_depth(record),
            http_versions,
            ..RobotGroup::default()
        };
        let mut group = self.requests(record, &reachable, span, group);
        self.add_trace(record, foreign_share, span);
        // Robots that request foreign URLs only have the origins of those URLs.
        if group.origins.is_empty() && foreign_share >= 1.0 {
            let origins: BTreeSet<OriginIndex> = self.foreign.iter().map(|url| url.origin).collect();
            group.origins = Weighted::new(origins.into_iter().map(|origin| (origin, 1.0)));
        }
        self.robot_count += u64::from(group.count());
        if self.robot_count > u64::from(MOST_ROBOTS) {
            let label = format!("{} in all; at most {MOST_ROBOTS} in a workload", self.robot_count);
            self.error(Code::TooMany, span, "too many robots", label);
            return;
        }
        let substitution = record.get("minimize_new_conn").map(|slot| slot.span);
        self.robots.push(group);
        self.robot_spans.push(RobotSpans { group: span, substitution });
    }

    /// True, with a warning, for robots with a rate of zero, which never send a request.
    fn is_passive(&mut self, record: &Record) -> bool {
        match record.get("req_rate") {
            Some(slot) if matches!(slot.value, Value::Rate(0.0)) => {
                self.warn(
                    Code::NoEffect,
                    slot.span,
                    "these robots never send a request",
                    "they are left out",
                );
                true
            }
            _ => false,
        }
    }

    /// Content types that a group can request, directly or embedded.
    fn reachable_contents(&mut self, origins: &Weighted<OriginIndex>) -> Rc<[ContentIndex]> {
        let mut servers: Vec<ServerIndex> = origins
            .items()
            .iter()
            .filter_map(|(origin, _)| self.origins.get(usize::from(*origin)))
            .map(|origin| origin.server)
            .collect();
        servers.sort_unstable();
        servers.dedup();
        // Many groups of robots use the same servers.
        if let Some(known) = self.reachable_by_servers.get(&servers) {
            return known.clone();
        }
        let found = self.reachable_from(&servers);
        self.reachable_by_servers.insert(servers, found.clone());
        found
    }

    fn reachable_from(&self, servers: &[ServerIndex]) -> Rc<[ContentIndex]> {
        let direct = servers.iter().filter_map(|server| self.servers.get(usize::from(*server)));
        let direct = direct.flat_map(|server| positive(&server.direct_access));
        let mut open: Vec<ContentIndex> = direct.collect();
        let mut found = vec![false; self.contents.len()];
        while let Some(content) = open.pop() {
            let index = usize::from(content);
            // Contents may embed one another, even in cycles: each is expanded once.
            if found.get_mut(index).is_some_and(|found| !std::mem::replace(found, true))
                && let Some(embedded) = self.contents.get(index).and_then(|c| c.embedded.as_ref())
            {
                open.extend(positive(&embedded.contents));
            }
        }
        let found = found.iter().enumerate().filter(|(_, found)| **found);
        found.filter_map(|(index, _)| ContentIndex::try_from(index).ok()).collect()
    }

    fn recurrence(
        &mut self,
        record: &Record,
        popularity: Option<&Popularity>,
        reachable: &[ContentIndex],
        span: Span,
    ) -> f64 {
        let given = self.share(record, "recurrence").unwrap_or(0.0);
        let unique = self.boolean(record, "unique_urls").unwrap_or(false);
        if unique && given > 0.0 {
            let at = record.get("unique_urls").map_or(span, |slot| slot.span);
            self.warn(
                Code::Conflict,
                at,
                "robots with unique URLs revisit nothing",
                "`recurrence` counts as 0%",
            );
        }
        let recurrence = if unique { 0.0 } else { given };
        let content_recurs =
            reachable.iter().filter_map(|content| self.contents.get(usize::from(*content))).any(|content| {
                content.behaviour.recurrence.is_some_and(|r| r > 0.0)
                    && content.behaviour.popularity.is_none()
            });
        if (recurrence > 0.0 || content_recurs) && popularity.is_none() && record.get("pop_model").is_none() {
            let at = record.get("recurrence").map_or(span, |slot| slot.span);
            self.diagnostics.add(
                Diagnostic::error(Code::Required, at, "robots that revisit objects need a popularity model")
                    .label("`pop_model` must be set too")
                    .help("write `pop_model = { pop_distr = popUnif(); };`"),
            );
        }
        recurrence
    }

    fn pace(&mut self, record: &Record) -> Pace {
        self.check_exclusive(record, ["req_rate", "req_inter_arrival"], "robots have one pace");
        let open = record.get("req_rate").or(record.get("req_inter_arrival"));
        let think = active_slot(record, "xact_think").map(|slot| slot.span);
        if let (Some(_), Some(think)) = (open, think) {
            self.warn(
                Code::NoEffect,
                think,
                "robots with a rate do not think",
                "their next request is due whatever became of the last",
            );
        }
        if let Some(per_second) = self.quantity(record, "req_rate", false) {
            return Pace::Rate { per_second };
        }
        if record.get("req_inter_arrival").is_some() {
            return self.inter_arrival(record).unwrap_or(Pace::BestEffort);
        }
        match self.distribution(record, "xact_think").filter(|_| open.is_none()) {
            Some(law) => Pace::Think(law),
            None => Pace::BestEffort,
        }
    }

    /// `req_inter_arrival`; exponential times are the Poisson process of a rate.
    fn inter_arrival(&mut self, record: &Record) -> Option<Pace> {
        let law = self.distribution(record, "req_inter_arrival")?;
        let mean = law.mean();
        if !(mean.is_finite() && mean > 0.0) {
            let label = "expected times with a mean above zero";
            let at = self.field_span(record, "req_inter_arrival");
            self.error(Code::OutOfRange, at, "requests would come without any time between them", label);
            return None;
        }
        Some(match law {
            Distribution::Exponential { mean } => Pace::Rate { per_second: mean.recip() },
            law => Pace::Renewal(law),
        })
    }

    fn interests(&mut self, record: &Record) -> Weighted<Interest> {
        let known =
            [("public", Interest::Public), ("private", Interest::Private), ("foreign", Interest::Foreign)];
        self.keywords(record, "interests", &known).unwrap_or_else(|| Weighted::one(Interest::Public))
    }

    /// Warns about `minimize_new_conn` without `note_substitutes()`.
    pub(super) fn check_substitution(&mut self, substitutes: &[Vec<OriginIndex>]) {
        let mut groups = self.robots.iter().zip(&self.robot_spans);
        let first = groups.find_map(|(group, spans)| spans.substitution.filter(|_| group.substitution > 0.0));
        if let Some(at) = first.filter(|_| substitutes.is_empty()) {
            self.warn(
                Code::NoEffect,
                at,
                "`minimize_new_conn` has no effect",
                "no servers stand for one another: `note_substitutes(S.addresses);` says which do",
            );
        }
    }

    /// Requests under way on a connection; none if that is always one.
    fn pipeline_depth(&mut self, record: &Record) -> Option<Distribution> {
        let slot = record.get("pipeline_depth")?;
        let law = self.distribution(record, "pipeline_depth")?;
        let at_most_one = match &law {
            Distribution::Constant(x) => *x <= 1.0,
            Distribution::Uniform { high, .. } => *high <= 1.0,
            Distribution::Zipf { n } => *n < 1.0,
            Distribution::Table(bins) => bins.iter().all(|bin| bin.high <= 1.0),
            _ => false,
        };
        if !at_most_one {
            return Some(law);
        }
        let help = match law {
            // The usual cause is a stray percent sign.
            Distribution::Zipf { n } => Some(format!("`zipf({0})` would go up to {0}", (n * 100.0).round())),
            _ => None,
        };
        self.diagnostics.add(
            Diagnostic::warning(Code::NoEffect, slot.span, "this pipeline depth is always 1")
                .label(format!("{} draws nothing above 1, so nothing is pipelined", slot.value))
                .maybe_help(help),
        );
        None
    }
}

fn interest_share(interests: &Weighted<Interest>, wanted: Interest) -> f64 {
    interests
        .items()
        .iter()
        .filter(|(interest, _)| *interest == wanted)
        .fold(0.0, |sum, (_, share)| sum + share)
}

/// The items of a selector with a positive weight.
pub(super) fn positive<T: Copy>(weighted: &Weighted<T>) -> impl Iterator<Item = T> {
    weighted.items().iter().filter(|(_, weight)| *weight > 0.0).map(|(item, _)| *item)
}
