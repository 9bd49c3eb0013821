//! Phases, goals, samples, and the bench.

use super::types::{
    ADDRESS, ADDRESSES, BOOL, Base, FLOAT, INT, RATE, RecordKind, RecordType, SIZE, Support, TEXT, TIME, Ty,
    full, ignored, object, partial,
};

const NO_SAMPLES: &str = "no samples are taken; `--xact-log` records every transaction";
const BENCH_ONLY: &str = "the functions that make addresses read it; everything runs on this machine";

pub(super) const PHASE: RecordType = RecordType {
    name: "Phase",
    support: Support::Full,
    groups: &[&[
        full("name", TEXT),
        full("goal", object(RecordKind::Goal)),
        full("populus_factor_beg", FLOAT),
        full("populus_factor_end", FLOAT),
        full("load_factor_beg", FLOAT),
        full("load_factor_end", FLOAT),
        full("recur_factor_beg", FLOAT),
        full("recur_factor_end", FLOAT),
        full("special_msg_factor_beg", FLOAT),
        full("special_msg_factor_end", FLOAT),
        full("log_stats", BOOL),
        full("primary", BOOL),
        full("wait_wss_freeze", BOOL),
        partial("synchronize", BOOL, "all robots share one schedule, so phases are always synchronised"),
        full("script", Ty::one(Base::Code)),
        full("rptmstat", object(RecordKind::Rptmstat)),
        partial("stats_samples", object(RecordKind::StatsSample).array(), NO_SAMPLES),
    ]],
};

pub(super) const GOAL: RecordType = RecordType {
    name: "Goal",
    support: Support::Full,
    groups: &[&[
        full("duration", TIME),
        full("xactions", INT),
        full("fill_size", SIZE),
        full("errors", FLOAT),
    ]],
};

pub(super) const RPTMSTAT: RecordType = RecordType {
    name: "Rptmstat",
    support: Support::Full,
    groups: &[&[
        full("sample_dur", TIME),
        full("load_delta", FLOAT),
        full("rptm_min", TIME),
        full("rptm_max", TIME),
    ]],
};

pub(super) const STATS_SAMPLE: RecordType = RecordType {
    name: "StatsSample",
    support: Support::Ignored(NO_SAMPLES),
    groups: &[&[
        ignored("name", TEXT, NO_SAMPLES),
        ignored("start", TIME, NO_SAMPLES),
        ignored("capacity", INT, NO_SAMPLES),
    ]],
};

/// Statistics that scripts read. Their names are not fields, but those in `eval/script/statistics.rs`.
pub(super) const STAT_SAMPLE: RecordType =
    RecordType { name: "StatSample", support: Support::Full, groups: &[] };

pub(super) const BENCH: RecordType = RecordType {
    name: "Bench",
    support: Support::Partial(BENCH_ONLY),
    groups: &[&[
        partial("peak_req_rate", RATE, BENCH_ONLY),
        partial("client_side", object(RecordKind::BenchSide), BENCH_ONLY),
        partial("server_side", object(RecordKind::BenchSide), BENCH_ONLY),
        partial("proxy_side", object(RecordKind::BenchSide), BENCH_ONLY),
    ]],
};

pub(super) const BENCH_SIDE: RecordType = RecordType {
    name: "BenchSide",
    support: Support::Partial(BENCH_ONLY),
    groups: &[&[
        partial("hosts", ADDRESSES, BENCH_ONLY),
        partial("max_host_load", RATE, BENCH_ONLY),
        partial("max_agent_load", RATE, BENCH_ONLY),
        partial("addr_space", ADDRESSES, BENCH_ONLY),
        partial("addr_mask", ADDRESS, BENCH_ONLY),
        ignored("addresses", ADDRESSES, "no aliases are made"),
        ignored("cpu_cores", INT.array().array(), "roles are placed by the lab"),
    ]],
};

/// Support of the schemes that deal addresses to the machines of a bench.
const SCHEME: Support = Support::Full;

pub(super) const POLYMIX_3_AS: RecordType = RecordType { name: "PolyMix3As", support: SCHEME, groups: &[] };
pub(super) const POLYMIX_4_AS: RecordType =
    RecordType { name: "PolyMix4As", support: SCHEME, groups: &[&[full("agents_per_addr", INT)]] };
pub(super) const WEBAXE_4_AS: RecordType =
    RecordType { name: "WebAxe4As", support: SCHEME, groups: &[&[full("agents_per_addr", INT)]] };
pub(super) const SRVLB_4_AS: RecordType =
    RecordType { name: "SrvLb4As", support: SCHEME, groups: &[&[full("agents_per_addr", INT)]] };
pub(super) const SPREAD_AS: RecordType =
    RecordType { name: "SpreadAs", support: SCHEME, groups: &[&[full("agents_per_addr", INT)]] };
