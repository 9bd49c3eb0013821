//! Cells of the matrix of workloads, and how near to each other ratios are that must be the same.

/// The stated tolerance: half a point, or three standard errors, whichever is larger.
const POINTS: f64 = 0.005;

const STANDARD_ERRORS: f64 = 3.0;

/// Requests of all robots in a second of the schedule.
const PER_SECOND: u32 = 400;

/// One cell of the matrix.
#[derive(Debug, Clone, Copy)]
pub struct Cell {
    pub interests: &'static str,
    /// The working set is frozen before half of the time is over.
    pub limited: bool,
    pub origins: u32,
    pub robots: u32,
}

pub const PUBLIC: &str = r#"[ "public" ]"#;

pub const PRIVATE: &str = r#"[ "private" ]"#;

pub const MIXED: &str = r#"[ "public": 60%, "private" ]"#;

impl Cell {
    /// Plain GETs of objects that never change, so many seconds long.
    pub fn workload(&self, seconds: u32) -> String {
        let Cell { interests, origins, robots, .. } = self;
        let rate = f64::from(PER_SECOND) / f64::from(*robots);
        let limit =
            if self.limited { format!("working_set_length({}sec);", seconds * 2 / 5) } else { String::new() };
        format!(
            r#"
            Content cntAny = {{ kind = "any"; size = exp(2KB); cachable = 85%; }};
            Server S = {{
                kind = "s"; contents = [ cntAny ]; direct_access = contents; pconn_use_lmt = const(1000);
                addresses = '10.1.0.1-{origins}:80';
            }};
            Robot R = {{
                kind = "r"; req_rate = {rate}/sec; recurrence = 60%; interests = {interests};
                pop_model = {{ pop_distr = popZipf(0.6); }}; pconn_use_lmt = const(1000); open_conn_lmt = {connections};
                origins = S.addresses; addresses = [ '10.2.0.1' ** {robots} ];
            }};
            Phase phFill = {{ name = "fill"; goal.duration = {fill}sec; recur_factor_beg = 0.3; recur_factor_end = 1; }};
            Phase phTop = {{ name = "top"; goal.duration = {top}sec; }};
            schedule(phFill, phTop);
            {limit}
            use(S, R);
            "#,
            connections = if *robots == 1 { 40 } else { 4 },
            fill = seconds / 2,
            top = seconds - seconds / 2,
        )
    }
}

/// How far apart two such ratios of so many requests may be.
pub fn tolerance(ratio: f64, all: u64) -> f64 {
    POINTS.max(STANDARD_ERRORS * (ratio * (1.0 - ratio) / all as f64).sqrt())
}
