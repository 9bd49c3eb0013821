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
use crate::value::Value;
use assay_settings::suggest::nearest;

/// Single numbers.
const SINGLE: [(&str, Base); 15] = [
    ("baseline.req.rate", Base::Rate),
    ("baseline.rep.rate", Base::Rate),
    ("duration", Base::Time),
    ("ok_xact.count", Base::Int),
    ("err_xact.count", Base::Int),
    ("err_xact.ratio", Base::Float),
    ("retr_xact.count", Base::Int),
    ("offered.ratio.obj", Base::Float),
    ("offered.ratio.byte", Base::Float),
    ("real.ratio.obj", Base::Float),
    ("real.ratio.byte", Base::Float),
    ("cachable.ratio.obj", Base::Float),
    ("cachable.ratio.byte", Base::Float),
    ("req.rate", Base::Rate),
    ("rep.rate", Base::Rate),
];
/// Classes of xacts, with `rptm` and `size`.
const STREAMS: [&str; 27] = [
    "rep",
    "custom.rep",
    "basic",
    "offered.hit",
    "offered.miss",
    "real.hit",
    "real.miss",
    "cachable.yes",
    "cachable.no",
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
];
/// Levels, with what came, what went, and how high they stand.
const LEVELS: [&str; 6] = ["xact", "populus", "wait", "conn.open", "conn.estb", "conn.idle"];
/// Protocols, with xacts and connections of their own.
const PROTOCOLS: [&str; 5] = ["socks", "ssl", "ftp", "connect", "authenticating"];

/// Every name with the kind of its number.
fn all() -> &'static BTreeMap<String, Base> {
    static ALL: OnceLock<BTreeMap<String, Base>> = OnceLock::new();
    ALL.get_or_init(|| {
        let mut names: BTreeMap<String, Base> =
            SINGLE.iter().map(|(name, base)| ((*name).to_owned(), *base)).collect();
        aggregate(&mut names, "baseline.rptm", Base::Time);
        for stream in STREAMS.into_iter().chain(["custom.projected.rep"]) {
            aggregate(&mut names, &format!("{stream}.rptm"), Base::Time);
            aggregate(&mut names, &format!("{stream}.size"), Base::Size);
        }
        aggregate(&mut names, "conn.ttl", Base::Time);
        aggregate(&mut names, "conn.use", Base::Float);
        let protocols = PROTOCOLS.iter().flat_map(|protocol| {
            ["xact", "conn.open", "conn.estb", "conn.idle"].map(|level| format!("{protocol}.{level}"))
        });
        for level in LEVELS.iter().map(|level| (*level).to_owned()).chain(protocols) {
            for (what, base) in [
                ("started", Base::Int),
                ("finished", Base::Int),
                ("level.mean", Base::Float),
                ("level.last", Base::Int),
            ] {
                names.insert(format!("{level}.{what}"), base);
            }
        }
        for protocol in PROTOCOLS {
            aggregate(&mut names, &format!("{protocol}.conn.ttl"), Base::Time);
            aggregate(&mut names, &format!("{protocol}.conn.use"), Base::Float);
            names.insert(format!("{protocol}.err_xact.count"), Base::Int);
        }
        names
    })
}

/// What is known of many numbers of one kind.
fn aggregate(names: &mut BTreeMap<String, Base>, of: &str, base: Base) {
    names.insert(format!("{of}.count"), Base::Int);
    names.insert(format!("{of}.rel_dev"), Base::Float);
    for what in ["mean", "min", "max", "std_dev", "sum"] {
        names.insert(format!("{of}.{what}"), base);
    }
}

impl Interpreter<'_> {
    /// A statistic of a sample: what stands behind the name of its variable.
    pub(in crate::eval) fn statistic(&mut self, sample: u16, path: &Path) -> Evaluated<Value> {
        let words: Vec<&str> = path.rest.iter().map(|name| &*name.text).collect();
        let name = words.join(".");
        let span = path.rest.first().unwrap_or(&path.first).span.to(path.span());
        if let Some(base) = all().get(&name) {
            if !is_statistic(&name) {
                self.diagnostics.add_once(
                    format!("statistic {name}"),
                    Diagnostic::warning(
                        Code::NotActedOn,
                        span,
                        format!("the statistic `{name}` is not measured"),
                    )
                    .label("no condition that depends on it is true"),
                );
            }
            return Ok(measured::value(ScriptExpr::Statistic { sample, name }, *base));
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
        assert_eq!(all().get("rep.rptm.mean"), Some(&Base::Time));
        assert_eq!(all().get("rep.size.count"), Some(&Base::Int));
        assert_eq!(all().get("xact.level.mean"), Some(&Base::Float));
        assert_eq!(all().get("rep.rptm"), None);
    }

    #[test]
    fn most_of_them_are_measured() {
        let measured = all().keys().filter(|name| is_statistic(name)).count();
        assert!(measured >= 280, "{measured} of {}", all().len());
    }
}
