//! Robots.

use std::collections::HashSet;

use assay_workload::model::{
    ContentIndex, Distribution, HttpVersion, Method, OriginIndex, Pace, Popularity, RequestType, RobotGroup,
    Weighted,
};

use super::Builder;
use crate::diagnostic::{Code, Diagnostic};
use crate::source::Span;
use crate::value::{Record, Value};

/// Interest in one of the worlds.
#[derive(Clone, Copy, PartialEq)]
enum Interest {
    Public,
    Private,
}

impl Builder<'_> {
    /// A group of robots.
    pub(super) fn robot(&mut self, record: &Record, span: Span) {
        let Some(addresses) = self.robot_addresses(record, span) else { return };
        if self.is_passive(record) {
            return;
        }
        self.note_fields(record);
        let origins = self.robot_origins(record, span);
        let reachable = self.reachable(&origins);
        let popularity = self.popularity(record, span);
        let recurrence = self.recurrence(record, popularity.as_ref(), &reachable, span);
        let methods = self.methods(record).unwrap_or_else(|| Weighted::one(Method::Get));
        let post_contents = self.post_contents(record, &methods, &reachable, span);
        let http_versions: Weighted<HttpVersion> = self.versions(record);
        let group = RobotGroup {
            kind: self.text(record, "kind").unwrap_or_else(|| "robot".to_owned()),
            addresses,
            origins,
            proxies: self.robot_proxies(record),
            pace: self.pace(record),
            recurrence,
            embedded_recurrence: self.share(record, "embed_recur").unwrap_or(0.0),
            popularity,
            private_share: self.private_share(record),
            request_types: self.request_types(record).unwrap_or_else(|| Weighted::one(RequestType::Basic)),
            methods,
            post_contents,
            connection_use_limit: self.distribution(record, "pconn_use_lmt"),
            idle_timeout: self.duration(record, "idle_pconn_tout", false),
            open_connection_limit: self.whole(record, "open_conn_lmt", 1),
            waiting_limit: self.whole(record, "wait_xact_lmt", 0),
            pipeline_depth: self.pipeline_depth(record),
            http_versions,
            ..RobotGroup::default()
        };
        let robots: u64 = self.robots.iter().chain([&group]).map(|group| u64::from(group.count())).sum();
        if robots > u64::from(u32::MAX) {
            self.error(Code::TooMany, span, "too many robots", format!("{robots} in all"));
            return;
        }
        self.robots.push(group);
    }

    /// Robots with a rate of zero send nothing by themselves, so they are left out.
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

    /// Content types that a group can come to request: asked for directly, or embedded in those.
    fn reachable(&self, origins: &Weighted<OriginIndex>) -> Vec<ContentIndex> {
        let mut servers: Vec<usize> = origins
            .items()
            .iter()
            .filter_map(|(origin, _)| self.origins.get(usize::from(*origin)))
            .map(|origin| usize::from(origin.server))
            .collect();
        servers.sort_unstable();
        servers.dedup();
        let direct = servers.into_iter().filter_map(|server| self.servers.get(server)).flat_map(|server| {
            server
                .direct_access
                .items()
                .iter()
                .filter(|(_, weight)| *weight > 0.0)
                .map(|(content, _)| *content)
        });
        let mut open: Vec<ContentIndex> = direct.collect();
        let mut found: HashSet<ContentIndex> = HashSet::new();
        while let Some(content) = open.pop() {
            if found.insert(content)
                && let Some(embedded) =
                    self.contents.get(usize::from(content)).and_then(|c| c.embedded.as_ref())
            {
                open.extend(embedded.contents.items().iter().map(|(content, _)| *content));
            }
        }
        let mut found: Vec<ContentIndex> = found.into_iter().collect();
        found.sort_unstable();
        found
    }

    fn recurrence(
        &mut self,
        record: &Record,
        popularity: Option<&Popularity>,
        reachable: &[ContentIndex],
        span: Span,
    ) -> f64 {
        let given = self.share(record, "recurrence").unwrap_or(0.0);
        let unique = self.truth(record, "unique_urls").unwrap_or(false);
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
        let by_content =
            reachable.iter().filter_map(|content| self.contents.get(usize::from(*content))).any(|content| {
                content.behaviour.recurrence.is_some_and(|r| r > 0.0)
                    && content.behaviour.popularity.is_none()
            });
        if (recurrence > 0.0 || by_content) && popularity.is_none() && record.get("pop_model").is_none() {
            let at = record.get("recurrence").map_or(span, |slot| slot.span);
            self.diagnostics.add(
                Diagnostic::error(Code::Required, at, "robots that revisit objects need a popularity model")
                    .label("`pop_model` must be set too")
                    .help("write `pop_model = { pop_distr = popUnif(); };`"),
            );
        }
        recurrence
    }

    /// Bodies of POST requests: needed if there can be such requests, useless if not.
    fn post_contents(
        &mut self,
        record: &Record,
        methods: &Weighted<Method>,
        reachable: &[ContentIndex],
        span: Span,
    ) -> Weighted<ContentIndex> {
        let posts =
            |methods: &Weighted<Method>| methods.items().iter().any(|(m, p)| *m == Method::Post && *p > 0.0);
        let own = posts(methods);
        let content = reachable.iter().filter_map(|content| self.contents.get(usize::from(*content)));
        let by_content: Option<String> = content
            .filter(|c| c.behaviour.methods.as_ref().is_some_and(posts))
            .map(|c| c.kind.clone())
            .next();
        let contents = self.content_choices(record, "post_contents");
        self.settle_pages();
        let slot = record.get("post_contents");
        if slot.is_none() && (own || by_content.is_some()) {
            let at = record.get("req_methods").map_or(span, |slot| slot.span);
            let why = match &by_content {
                Some(kind) if !own => format!("the content type `{kind}` is requested with POST"),
                _ => "these robots send POST requests".to_owned(),
            };
            self.diagnostics.add(
                Diagnostic::error(Code::Required, at, why)
                    .label("`post_contents` must say what they send")
                    .help("write `post_contents = [ cntSimpleRequest ];` (that type is in the bundled contents.pg)"),
            );
        }
        if let Some(slot) = slot.filter(|_| !own && by_content.is_none() && !contents.is_empty()) {
            self.warn(
                Code::NoEffect,
                slot.span,
                "`post_contents` has no effect",
                "no request of these robots is a POST",
            );
        }
        contents
    }

    fn pace(&mut self, record: &Record) -> Pace {
        let between = record.get("req_inter_arrival");
        if let (Some(_), Some(between)) = (record.get("req_rate"), between) {
            self.error(
                Code::Conflict,
                between.span,
                "robots have one pace",
                "expected either `req_rate` or `req_inter_arrival`",
            );
        }
        if let Some(per_second) = self.quantity(record, "req_rate", false) {
            return Pace::Rate { per_second };
        }
        let Some(law) = between.and_then(|_| self.distribution(record, "req_inter_arrival")) else {
            return Pace::BestEffort;
        };
        let at = between.map_or(Span::default(), |slot| slot.span);
        let mean = mean(&law).filter(|mean| *mean > 0.0);
        if !matches!(law, Distribution::Exponential { .. }) {
            let label = match mean {
                Some(_) => "arrivals are Poisson with the same mean",
                None => "it has no mean to go by; the robots go at best effort",
            };
            self.not_acted_on("Robot.req_inter_arrival other than exp()", at, label);
        }
        mean.map_or(Pace::BestEffort, |mean| Pace::Rate { per_second: 1.0 / mean })
    }

    fn private_share(&mut self, record: &Record) -> f64 {
        let known = [("public", Interest::Public), ("private", Interest::Private)];
        let instead = [("foreign", Interest::Public, "asked of the public world: there are no foreign URLs")];
        let interests = self.words(record, "interests", &known, &instead);
        let private = |interests: Weighted<Interest>| {
            interests
                .items()
                .iter()
                .filter(|(interest, _)| *interest == Interest::Private)
                .map(|(_, p)| p)
                .sum()
        };
        interests.map_or(0.0, private)
    }

    /// Requests under way on a connection; none when it can only be one.
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
            // A stray percent sign, most likely.
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

/// The mean of a distribution, where it is known.
fn mean(law: &Distribution) -> Option<f64> {
    Some(match law {
        Distribution::Constant(mean)
        | Distribution::Exponential { mean }
        | Distribution::Normal { mean, .. }
        | Distribution::LogNormal { mean, .. } => *mean,
        Distribution::Uniform { low, high } => (low + high) / 2.0,
        Distribution::Table(bins) => {
            let total: f64 = bins.iter().map(|bin| bin.weight).sum();
            bins.iter().map(|bin| bin.weight * (bin.low + bin.high) / 2.0).sum::<f64>() / total
        }
        Distribution::Zipf { .. } | Distribution::Sequence { .. } => return None,
    })
}
