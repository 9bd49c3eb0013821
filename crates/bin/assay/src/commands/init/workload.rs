//! The text of a workload to begin with.

use std::time::Duration;

use crate::units::show_duration;

/// Length of a workload, unless another is wanted.
pub const LENGTH: Duration = Duration::from_secs(60);
/// The rate of one robot: small, so that the requests of one robot seldom overlap.
const ROBOT_RATE: f64 = 2.0;
/// Robots at least, so that their requests mix.
const LEAST_ROBOTS: f64 = 10.0;

/// Traffic of a workload.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrafficShape {
    /// Requests per second of all robots together.
    pub rate: f64,
    /// Mean size of an object, in bytes.
    pub size: u64,
    /// Share of requests for an object that was requested before.
    pub revisits: f64,
    /// Length of the whole schedule.
    pub length: Duration,
}

/// A workload in the file `file`, formatted as `assay fmt` does.
pub fn text(file: &str, shape: TrafficShape) -> String {
    let text = unformatted(file, shape);
    // The text can be parsed whatever its numbers are; should it not be, the run says why.
    assay_pgl::format(file, &text).unwrap_or(text)
}

fn unformatted(file: &str, shape: TrafficShape) -> String {
    let TrafficShape { rate, size, revisits, length } = shape;
    let robots = (rate / ROBOT_RATE).max(LEAST_ROBOTS).ceil();
    let each = rate / robots;
    let share = (revisits * 1000.0).round() / 10.0;
    let seconds = length.as_secs_f64().max(4.0);
    let (warm, cool) = (seconds * 0.2, seconds * 0.1);
    let plateau = seconds - warm - cool;
    let shown = show_duration(length);
    let kilobytes = size as f64 / 1024.0;
    format!(
        "\
/*
 * {rate} requests per second for {shown}, through whatever `assay run` puts under test.
 *
 *   assay check {file}                  what it would do, and mistakes in it
 *   assay run {file} --proxy varnish    run it through a proxy (`assay proxies` lists them)
 *
 * The language: docs/reference/pgl.md. More examples: `assay workloads show site`.
 */

// --- What there is ------------------------------------------------------------------------------

// How often objects change, and what their headers say about it.
ObjLifeCycle olcHour = {{
    length = logn(4hour, 1hour);        // time between two changes of an object
    variance = 50%;
    with_lmt = 100%;                    // all have Last-Modified
    expires = [now + const(10min)];     // a cache may serve it for so long without asking the origin
}};

Content cntObject = {{
    kind = \"object\";
    mime = {{ type = \"text/html\"; extensions = [\".html\"]; }};
    size = exp({kilobytes}KB);               // mean size; also const(), unif(), logn(), and tables
    obj_life_cycle = olcHour;
    cachable = 90%;                     // the rest must not be stored
}};

// --- Who has it ---------------------------------------------------------------------------------

Server S = {{
    kind = \"origin\";
    contents = [cntObject];
    direct_access = contents;
    xact_think = norm(30msec, 10msec);  // time that an origin takes for a response: what a hit saves
    pconn_use_lmt = zipf(64);
    idle_pconn_tout = 15sec;
    http_versions = [\"1.1\"];
}};

// --- Who wants it -------------------------------------------------------------------------------

Robot R = {{
    kind = \"visitor\";
    req_rate = {each}/sec;              // of each robot
    recurrence = {share}%;              // requests for something that was requested before
    interests = [\"public\": 90%, \"private\"];   // shared by all robots, or of one robot alone
    pop_model = {{ pop_distr = popZipf(0.8); }}; // a few objects are requested far more often than others
    req_types = [\"Basic\": 96%, \"Ims304\"];     // plain requests, and conditional ones
    pconn_use_lmt = zipf(64);
    open_conn_lmt = 8;
    http_versions = [\"1.1\"];
}};

addr[] origins = ['10.1.0.1:9000'];
addr[] visitors = ['10.2.0.1' ** {robots}];
S.addresses = origins;
R.origins = origins;
R.addresses = visitors;

// --- When ---------------------------------------------------------------------------------------

Phase phWarm = {{ name = \"warm\"; goal.duration = {warm}sec; load_factor_beg = 0.2; load_factor_end = 1; log_stats = false; }};
Phase phPlateau = {{ name = \"plateau\"; goal.duration = {plateau}sec; load_factor_beg = 1; load_factor_end = 1; }};
Phase phCool = {{ name = \"cool\"; goal.duration = {cool}sec; load_factor_end = 0; log_stats = false; }};

schedule(phWarm, phPlateau, phCool);
working_set_length({working_set}sec); // objects that are older are not requested any more

// What a run must show; exit code 99 if it does not.
require(\"errors == 0\");

use(S, R);
",
        working_set = (seconds / 2.0).ceil()
    )
}

#[cfg(test)]
mod tests {
    use assay_pgl::{ResolveError, ResolvedSource, Resolver, compile};

    use super::*;

    struct Only(String);

    impl Resolver for Only {
        fn read(&self, name: &str, _: Option<&str>) -> Result<ResolvedSource, ResolveError> {
            Ok(ResolvedSource { name: name.into(), text: self.0.clone() })
        }
    }

    #[test]
    fn what_is_written_compiles_without_a_remark_and_has_the_rate() {
        for (rate, revisits) in [(200.0, 0.75), (1.0, 0.0), (33.3, 0.005), (100_000.0, 0.99)] {
            let shape = TrafficShape { rate, size: 13 << 10, revisits, length: LENGTH };
            let compiled = compile("mine.pg", &Only(text("mine.pg", shape)))
                .unwrap_or_else(|failure| panic!("{:?}", failure.diagnostics));
            let written = text("mine.pg", shape);
            assert_eq!(assay_pgl::format("mine.pg", &written).as_deref(), Ok(written.as_str()), "{rate}");
            assert!(compiled.warnings.is_empty(), "{rate}: {:?}", compiled.warnings);
            let robots = f64::from(compiled.workload.robot_count());
            assert!(robots >= LEAST_ROBOTS && (rate / robots) <= ROBOT_RATE + 1e-9, "{rate}: {robots}");
        }
    }
}
