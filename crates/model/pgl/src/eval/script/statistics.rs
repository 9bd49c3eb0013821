//! The statistics that scripts can read, by their dotted names.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use assay_workload::model::ScriptExpr;
use assay_workload::script::is_statistic;

use super::measured;
use crate::ast::Path;
use crate::diagnostic::{Code, Diagnostic};
use crate::eval::{Evaluated, Interpreter};
use crate::schema::Base;
use crate::value::{Counted, Value};
use assay_base::settings::suggest::nearest;

/// The kind of a number, and what it counts if it is plain.
type Kind = (Base, Option<Counted>);

const INT: Kind = (Base::Int, None);
const FLOAT: Kind = (Base::Float, None);
const TIME: Kind = (Base::Time, None);
const SIZE: Kind = (Base::Size, None);
const PERCENTS: Kind = (Base::Float, Some(Counted::Percents));
const PER_SECOND: Kind = (Base::Float, Some(Counted::PerSecond));

const SINGLE: [(&str, Kind); 9] = [
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
/// Classes of xacts, with `rptm` and `size`.
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
/// Classes of xacts in two parts, with the ratio of the first.
const PARTED: [(&str, [&str; 2]); 3] =
    [("offered", HIT_OR_MISS), ("real", HIT_OR_MISS), ("cachable", ["yes", "no"])];
const HIT_OR_MISS: [&str; 2] = ["hit", "miss"];
/// Levels, with what came, what went, and how high they stand.
const LEVELS: [&str; 6] = ["xact", "populus", "wait", "conn.open", "conn.estb", "conn.idle"];
/// Protocols, with xacts and connections of their own.
const PROTOCOLS: [&str; 5] = ["socks", "ssl", "ftp", "connect", "authenticating"];

/// Every name with its kind.
type Names = BTreeMap<String, Kind>;

fn all() -> &'static Names {
    static ALL: OnceLock<Names> = OnceLock::new();
    ALL.get_or_init(|| {
        let mut names: Names = SINGLE.iter().map(|(name, kind)| ((*name).to_owned(), *kind)).collect();
        aggregate(&mut names, "baseline.rptm", TIME);
        aggregate(&mut names, "conn.ttl", TIME);
        aggregate(&mut names, "conn.use", INT);
        STREAMS.iter().for_each(|of| stream(&mut names, of));
        PARTED.iter().for_each(|(of, parts)| parted(&mut names, of, *parts));
        LEVELS.iter().for_each(|of| level(&mut names, of));
        for protocol in PROTOCOLS {
            parted(&mut names, &format!("{protocol}.xact"), HIT_OR_MISS);
            level(&mut names, &format!("{protocol}.xact"));
            level(&mut names, &format!("{protocol}.conn"));
            names.insert(format!("{protocol}.err_xact.count"), INT);
        }
        names
    })
}

/// What is known of many numbers of one kind.
fn aggregate(names: &mut Names, of: &str, kind: Kind) {
    let deviation = match kind {
        TIME => (Base::Float, Some(Counted::Milliseconds)),
        SIZE => (Base::Float, Some(Counted::Bytes)),
        _ => FLOAT,
    };
    for what in ["mean", "min", "max", "sum"] {
        names.insert(format!("{of}.{what}"), kind);
    }
    for (what, kind) in [("count", INT), ("std_dev", deviation), ("rel_dev", PERCENTS)] {
        names.insert(format!("{of}.{what}"), kind);
    }
}

fn stream(names: &mut Names, of: &str) {
    aggregate(names, &format!("{of}.rptm"), TIME);
    aggregate(names, &format!("{of}.size"), SIZE);
}

fn parted(names: &mut Names, of: &str, parts: [&str; 2]) {
    parts.iter().for_each(|part| stream(names, &format!("{of}.{part}")));
    for what in ["obj", "byte"] {
        names.insert(format!("{of}.ratio.{what}"), PERCENTS);
    }
}

fn level(names: &mut Names, of: &str) {
    for (what, kind) in [("started", INT), ("finished", INT), ("level.mean", FLOAT), ("level.last", INT)] {
        names.insert(format!("{of}.{what}"), kind);
    }
}

impl Interpreter<'_> {
    /// A statistic of a sample: what stands behind the name of its variable.
    pub(in crate::eval) fn statistic(&mut self, sample: u16, path: &Path) -> Evaluated<Value> {
        let words: Vec<&str> = path.rest.iter().map(|name| &*name.text).collect();
        let name = words.join(".");
        let span = path.rest.first().unwrap_or(&path.first).span.to(path.span());
        if let Some((base, counted)) = all().get(&name) {
            if !is_statistic(&name) {
                self.diagnostics.add_once(
                    format!("statistic {name}"),
                    Diagnostic::warning(
                        Code::NotActedOn,
                        span,
                        format!("the statistic `{name}` is not measured"),
                    )
                    .label("it is no number: of all comparisons with it, only `!=` is true"),
                );
            }
            return Ok(measured::counting(ScriptExpr::Statistic { sample, name }, *base, *counted));
        }
        self.fail(
            Diagnostic::error(Code::UnknownField, span, format!("there is no statistic `{name}`"))
                .label("expected the name of a statistic, such as `rep.rptm.mean`")
                .meant(nearest(&name, all().keys().map(String::as_str))),
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
            ("rep.rptm.std_dev", Some((Base::Float, Some(Counted::Milliseconds)))),
            ("rep.size.std_dev", Some((Base::Float, Some(Counted::Bytes)))),
            ("rep.size.rel_dev", Some(PERCENTS)),
            ("cachable.ratio.byte", Some(PERCENTS)),
            ("baseline.req.rate", Some(PER_SECOND)),
            ("conn.use.mean", Some(INT)),
            ("xact.level.mean", Some(FLOAT)),
            ("rep.rptm", None),
        ] {
            assert_eq!(all().get(name).copied(), kind, "{name}");
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
                assert_eq!(all().get(&format!("{protocol}.{name}")).copied(), kind, "{protocol}.{name}");
            }
        }
    }

    #[test]
    fn most_of_them_are_measured() {
        let measured = all().keys().filter(|name| is_statistic(name)).count();
        assert!(measured >= 280, "{measured} of {}", all().len());
    }
}
