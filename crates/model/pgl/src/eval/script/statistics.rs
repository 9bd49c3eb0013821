//! The statistics that scripts can read, by their dotted names in Web Polygraph.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use assay_workload::model::ScriptExpr;
use assay_workload::script::is_statistic;

use super::runtime;
use crate::ast::Path;
use crate::diagnostic::{Code, Diagnostic};
use crate::eval::{EvalResult, Interpreter};
use crate::schema::Base;
use crate::value::{NumberUnit, Value};
use assay_base::settings::suggest::nearest;

/// The base type of a statistic, and the unit of one that is a plain number.
type StatisticKind = (Base, Option<NumberUnit>);

const INT: StatisticKind = (Base::Int, None);
const FLOAT: StatisticKind = (Base::Float, None);
const TIME: StatisticKind = (Base::Time, None);
const SIZE: StatisticKind = (Base::Size, None);
const PERCENTS: StatisticKind = (Base::Float, Some(NumberUnit::Percents));
const PER_SECOND: StatisticKind = (Base::Float, Some(NumberUnit::PerSecond));

const SINGLE: [(&str, StatisticKind); 9] = [
    ("baseline.req.rate", PER_SECOND),
    ("baseline.rep.rate", PER_SECOND),
    ("duration", TIME),
    ("ok_xact.count", INT),
    ("err_xact.count", INT),
    ("err_xact.ratio", PERCENTS),
    ("retr_xact.count", INT),
    ("req.rate", PER_SECOND),
    ("rep.rate", PER_SECOND),
];
/// Classes of xacts that have `rptm` and `size`.
const STREAMS: [&str; 22] = [
    "rep",
    "custom.rep",
    "basic",
    "fill",
    "redired_req",
    "rep_to_redir",
    "ims",
    "reload",
    "range",
    "head",
    "post",
    "put",
    "abort",
    "page",
    "auth.none",
    "auth.ing",
    "auth.ed",
    "tunneled",
    "live.rep",
    "projected.rep",
    "custom.live.rep",
    "custom.projected.rep",
];
/// Classes of xacts in two parts, with the ratio of the first part.
const PAIRS: [(&str, [&str; 2]); 3] =
    [("offered", HIT_OR_MISS), ("real", HIT_OR_MISS), ("cachable", ["yes", "no"])];
const HIT_OR_MISS: [&str; 2] = ["hit", "miss"];
/// Levels, with the numbers started and finished and the current level.
const LEVELS: [&str; 6] = ["xact", "populus", "wait", "conn.open", "conn.estb", "conn.idle"];
/// Protocols, with xacts and connections of their own.
const PROTOCOLS: [&str; 5] = ["socks", "ssl", "ftp", "connect", "authenticating"];

type StatisticKinds = BTreeMap<String, StatisticKind>;

fn statistics() -> &'static StatisticKinds {
    static ALL: OnceLock<StatisticKinds> = OnceLock::new();
    ALL.get_or_init(|| {
        let mut names: StatisticKinds =
            SINGLE.iter().map(|(name, kind)| ((*name).to_owned(), *kind)).collect();
        insert_aggregate(&mut names, "baseline.rptm", TIME);
        insert_aggregate(&mut names, "conn.ttl", TIME);
        insert_aggregate(&mut names, "conn.use", INT);
        STREAMS.iter().for_each(|of| insert_stream(&mut names, of));
        PAIRS.iter().for_each(|(of, parts)| insert_pair(&mut names, of, *parts));
        LEVELS.iter().for_each(|of| insert_level(&mut names, of));
        for protocol in PROTOCOLS {
            insert_pair(&mut names, &format!("{protocol}.xact"), HIT_OR_MISS);
            insert_level(&mut names, &format!("{protocol}.xact"));
            insert_level(&mut names, &format!("{protocol}.conn"));
            names.insert(format!("{protocol}.err_xact.count"), INT);
        }
        names
    })
}

/// The statistics of a set of numbers.
fn insert_aggregate(names: &mut StatisticKinds, of: &str, kind: StatisticKind) {
    let deviation = match kind {
        TIME => (Base::Float, Some(NumberUnit::Milliseconds)),
        SIZE => (Base::Float, Some(NumberUnit::Bytes)),
        _ => FLOAT,
    };
    for what in ["mean", "min", "max", "sum"] {
        names.insert(format!("{of}.{what}"), kind);
    }
    for (what, kind) in [("count", INT), ("std_dev", deviation), ("rel_dev", PERCENTS)] {
        names.insert(format!("{of}.{what}"), kind);
    }
}

fn insert_stream(names: &mut StatisticKinds, of: &str) {
    insert_aggregate(names, &format!("{of}.rptm"), TIME);
    insert_aggregate(names, &format!("{of}.size"), SIZE);
}

fn insert_pair(names: &mut StatisticKinds, of: &str, parts: [&str; 2]) {
    parts.iter().for_each(|part| insert_stream(names, &format!("{of}.{part}")));
    for what in ["obj", "byte"] {
        names.insert(format!("{of}.ratio.{what}"), PERCENTS);
    }
}

fn insert_level(names: &mut StatisticKinds, of: &str) {
    for (what, kind) in [("started", INT), ("finished", INT), ("level.mean", FLOAT), ("level.last", INT)] {
        names.insert(format!("{of}.{what}"), kind);
    }
}

impl Interpreter<'_> {
    /// The statistic of a sample that the rest of a path names.
    pub(in crate::eval) fn statistic(&mut self, sample: u16, path: &Path) -> EvalResult<Value> {
        let words: Vec<&str> = path.rest.iter().map(|name| &*name.text).collect();
        let name = words.join(".");
        let span = path.rest.first().unwrap_or(&path.first).span.to(path.span());
        if let Some((base, unit)) = statistics().get(&name) {
            if !is_statistic(&name) {
                self.diagnostics.add_once(
                    format!("statistic {name}"),
                    Diagnostic::warning(
                        Code::Unsupported,
                        span,
                        format!("the statistic `{name}` is not measured"),
                    )
                    .label("it is no number: of all comparisons with it, only `!=` is true"),
                );
            }
            return Ok(runtime::runtime_value(ScriptExpr::Statistic { sample, name }, *base, *unit));
        }
        self.fail(
            Diagnostic::error(Code::UnknownField, span, format!("there is no statistic `{name}`"))
                .label("expected the name of a statistic, such as `rep.rptm.mean`")
                .suggest(nearest(&name, statistics().keys().map(String::as_str))),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_know_their_kinds() {
        for (name, kind) in [
            ("rep.rptm.mean", Some(TIME)),
            ("rep.size.count", Some(INT)),
            ("rep.rptm.std_dev", Some((Base::Float, Some(NumberUnit::Milliseconds)))),
            ("rep.size.std_dev", Some((Base::Float, Some(NumberUnit::Bytes)))),
            ("rep.size.rel_dev", Some(PERCENTS)),
            ("cachable.ratio.byte", Some(PERCENTS)),
            ("baseline.req.rate", Some(PER_SECOND)),
            ("conn.use.mean", Some(INT)),
            ("xact.level.mean", Some(FLOAT)),
            ("rep.rptm", None),
        ] {
            assert_eq!(statistics().get(name).copied(), kind, "{name}");
        }
    }

    #[test]
    fn protocols_have_the_statistics_of_polygraph_and_no_others() {
        for protocol in PROTOCOLS {
            for (name, kind) in [
                ("xact.ratio.obj", Some(PERCENTS)),
                ("xact.hit.rptm.mean", Some(TIME)),
                ("xact.miss.size.sum", Some(SIZE)),
                ("xact.started", Some(INT)),
                ("xact.level.last", Some(INT)),
                ("conn.started", Some(INT)),
                ("conn.level.mean", Some(FLOAT)),
                ("err_xact.count", Some(INT)),
                ("conn.open.started", None),
                ("conn.open.level.mean", None),
                ("conn.ttl.mean", None),
                ("conn.use.mean", None),
            ] {
                assert_eq!(
                    statistics().get(&format!("{protocol}.{name}")).copied(),
                    kind,
                    "{protocol}.{name}"
                );
            }
        }
    }

    #[test]
    fn most_of_them_are_measured() {
        let measured = statistics().keys().filter(|name| is_statistic(name)).count();
        assert!(measured >= 280, "{measured} of {}", statistics().len());
    }
}
