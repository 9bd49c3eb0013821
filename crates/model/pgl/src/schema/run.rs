//! Phases, goals, samples, and the bench.

use super::types::{
    ADDRESS, ADDRESSES, BOOL, Base, Effect, FLOAT, INT, RATE, RecordKind, RecordType, SIZE, TEXT, TIME, Ty,
    full, none, object, part,
};

/// For samples of transactions.
const NO_SAMPLES: &str = "no samples are taken; `--xact-log` records every transaction";
/// For machines and their limits.
const BENCH_ONLY: &str = "the functions that make addresses read it; everything runs on this machine";

pub(super) const PHASE: RecordType = RecordType {
    name: "Phase",
    effect: Effect::Full,
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
        part("synchronize", BOOL, "all robots share one schedule, so phases are always synchronised"),
        full("script", Ty::one(Base::Code)),
        full("rptmstat", object(RecordKind::Rptmstat)),
        part("stats_samples", object(RecordKind::StatsSample).array(), NO_SAMPLES),
    ]],
};

pub(super) const GOAL: RecordType = RecordType {
    name: "Goal",
    effect: Effect::Full,
    groups: &[&[
        full("duration", TIME),
        full("xactions", INT),
        full("fill_size", SIZE),
        full("errors", FLOAT),
    ]],
};

pub(super) const RPTMSTAT: RecordType = RecordType {
    name: "Rptmstat",
    effect: Effect::Full,
    groups: &[&[
        full("sample_dur", TIME),
        full("load_delta", FLOAT),
        full("rptm_min", TIME),
        full("rptm_max", TIME),
    ]],
};

pub(super) const STATS_SAMPLE: RecordType = RecordType {
    name: "StatsSample",
    effect: Effect::None(NO_SAMPLES),
    groups: &[&[
        none("name", TEXT, NO_SAMPLES),
        none("start", TIME, NO_SAMPLES),
        none("capacity", INT, NO_SAMPLES),
    ]],
};

/// Statistics that scripts read; their names are not fields of the language but of what is measured.
pub(super) const STAT_SAMPLE: RecordType =
    RecordType { name: "StatSample", effect: Effect::Full, groups: &[] };

pub(super) const BENCH: RecordType = RecordType {
    name: "Bench",
    effect: Effect::Part(BENCH_ONLY),
    groups: &[&[
        part("peak_req_rate", RATE, BENCH_ONLY),
        part("client_side", object(RecordKind::BenchSide), BENCH_ONLY),
        part("server_side", object(RecordKind::BenchSide), BENCH_ONLY),
        part("proxy_side", object(RecordKind::BenchSide), BENCH_ONLY),
    ]],
};

pub(super) const BENCH_SIDE: RecordType = RecordType {
    name: "BenchSide",
    effect: Effect::Part(BENCH_ONLY),
    groups: &[&[
        part("hosts", ADDRESSES, BENCH_ONLY),
        part("max_host_load", RATE, BENCH_ONLY),
        part("max_agent_load", RATE, BENCH_ONLY),
        part("addr_space", ADDRESSES, BENCH_ONLY),
        part("addr_mask", ADDRESS, BENCH_ONLY),
        none("addresses", ADDRESSES, "no aliases are made"),
        none("cpu_cores", INT.array().array(), "roles are placed by the lab"),
    ]],
};

/// For the schemes that deal addresses to the machines of a bench.
const SCHEME: Effect = Effect::Full;

pub(super) const POLYMIX_3_AS: RecordType = RecordType { name: "PolyMix3As", effect: SCHEME, groups: &[] };
pub(super) const POLYMIX_4_AS: RecordType =
    RecordType { name: "PolyMix4As", effect: SCHEME, groups: &[&[full("agents_per_addr", INT)]] };
pub(super) const WEBAXE_4_AS: RecordType =
    RecordType { name: "WebAxe4As", effect: SCHEME, groups: &[&[full("agents_per_addr", INT)]] };
pub(super) const SRVLB_4_AS: RecordType =
    RecordType { name: "SrvLb4As", effect: SCHEME, groups: &[&[full("agents_per_addr", INT)]] };
pub(super) const SPREAD_AS: RecordType =
    RecordType { name: "SpreadAs", effect: SCHEME, groups: &[&[full("agents_per_addr", INT)]] };
