//! Cases tried on one target: many at the same time, and those that do not hold once more by themselves.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::case::{Applicability, Case, Step};
use crate::check::{Finding, check};
use crate::client::{Client, EncodedRequest, encode_request};
use crate::observe::{Arrival, Observation, Received};
use crate::origin::{Origin, Try, body};
use crate::retries::Contradiction;
use crate::schedule::{ActiveTry, SETTLE, TryLimits, run_cases};
use crate::transport::{Endpoint, Tls};
use crate::verdict::{Judgement, TryCounts, Verdict, judge, resolve};

/// Tries that are active at the same time.
const AT_ONCE: usize = 150;
/// The same for cases that may upset connections.
const ISOLATED_AT_ONCE: usize = 8;
/// The same over HTTP/2, where most of them wait for the end of a connection of their own.
const ISOLATED_HTTP2_AT_ONCE: usize = 32;
/// The same for floods, which are last.
const FLOODS_AT_ONCE: usize = 8;

#[derive(Debug, Clone)]
pub struct Target {
    pub address: SocketAddr,
    /// `Host` of requests.
    pub host: String,
    /// True if it stores responses; otherwise the cases for caches do not apply.
    pub stores: bool,
    /// True if it is a forward proxy: requests carry whole URLs.
    pub is_forward: bool,
    /// True if it is several caches that work together.
    pub several: bool,
    /// TLS settings; none: plain text.
    pub tls: Option<Tls>,
    /// Whether it speaks HTTP/2 there.
    pub http2: Http2,
}

impl Target {
    pub fn endpoint(&self) -> Endpoint {
        Endpoint { address: self.address, tls: self.tls.clone() }
    }

    fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }
}

/// Whether a target speaks HTTP/2 to clients that begin with it, or agree on it over TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Http2 {
    #[default]
    No,
    /// At an address where it speaks nothing else.
    Alone,
    /// At the address where it speaks HTTP/1.1, too.
    Beside,
}

/// Result of a case on a target.
#[derive(Debug, Clone)]
pub struct Outcome {
    pub case: Rc<Case>,
    pub judgement: Judgement,
    /// Observations of the try that decided; empty where the case does not apply.
    pub observations: Vec<Observation>,
    pub tries: usize,
    /// Verdicts of the tries.
    pub times: TryCounts,
}

/// Tries cases on a target, with its origin behind it, `on_progress` is called after each case with how many are done and how many there are.
/// Call it in a `LocalSet`.
pub async fn run(
    cases: &[Rc<Case>],
    target: &Target,
    origin: &Rc<Origin>,
    on_progress: impl Fn(usize, usize),
) -> Vec<Outcome> {
    let mut outcomes: Vec<Outcome> = Vec::new();
    // Those that may upset connections are tried behind the others, and those that keep a target busy last.
    for (isolated, is_flood) in [(false, false), (true, false), (false, true)] {
        let is_now =
            |case: &&Rc<Case>| case.is_flood() == is_flood && (is_flood || case.isolated == isolated);
        let all: Vec<Rc<Case>> = cases.iter().filter(is_now).cloned().collect();
        let (apply, others): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|case| inapplicable_reason(case, target).is_none());
        let at_once = match (is_flood, isolated, target.http2) {
            (true, ..) => FLOODS_AT_ONCE,
            (_, false, _) => AT_ONCE,
            (_, true, Http2::No) => ISOLATED_AT_ONCE,
            (_, true, _) => ISOLATED_HTTP2_AT_ONCE,
        };
        let done = Cell::new(outcomes.len());
        let count = || {
            done.set(done.get() + 1);
            on_progress(done.get(), cases.len());
        };
        let effort = TryLimits { at_once, contradiction: Contradiction::Counted };
        outcomes.extend(run_cases(apply, target, origin, effort, count).await);
        outcomes.extend(others.into_iter().map(|case| not_applicable(case, target)));
    }
    resolve_dependencies(&mut outcomes);
    outcomes.sort_by(|a, b| (&a.case.topic, &a.case.name).cmp(&(&b.case.topic, &b.case.name)));
    outcomes
}

/// Reason for which a case does not apply to a target; none: it does.
fn inapplicable_reason(case: &Case, target: &Target) -> Option<&'static str> {
    if !target.stores && case.applies == Applicability::Cache {
        return Some("the target stores no responses");
    }
    if target.several && case.alone {
        return Some("each of the caches does by itself what the case looks at");
    }
    if case.uses_http2() {
        match target.http2 {
            _ if target.is_forward => return Some("HTTP/2 is tried on gateways only"),
            Http2::No => return Some("the target speaks no HTTP/2 to clients"),
            Http2::Alone if case.uses_http1() => {
                return Some("the target speaks HTTP/1.1 and HTTP/2 at different addresses");
            }
            Http2::Alone | Http2::Beside => {}
        }
    }
    // What is written byte by byte, or chooses its form itself, is for gateways.
    let is_own = |step: &Step| step.request.raw.is_some() || step.request.host.is_some();
    (target.is_forward && case.steps.iter().any(is_own))
        .then_some("the case requests what only a gateway gets")
}

fn not_applicable(case: Rc<Case>, target: &Target) -> Outcome {
    let judgement =
        Judgement::new(Verdict::NotApplicable, inapplicable_reason(&case, target).unwrap_or_default());
    Outcome { case, judgement, observations: Vec::new(), tries: 0, times: TryCounts::default() }
}

/// If a target gave no response to any request, and should have, it has refused nothing: all cases say nothing then.
pub fn mark_unresponsive(outcomes: &mut [Outcome]) {
    let received =
        || outcomes.iter().flat_map(|outcome| &outcome.observations).flat_map(|step| &step.received);
    let should_have = outcomes.iter().any(|outcome| outcome.judgement.verdict == Verdict::Inconclusive);
    if !should_have || received().any(|got| got.response.is_some()) {
        return;
    }
    let problem = received().find_map(|got| got.problem.clone()).unwrap_or_default();
    let reason = format!("the target gave no response to any request: {problem}");
    for outcome in outcomes.iter_mut().filter(|outcome| !outcome.observations.is_empty()) {
        outcome.judgement = Judgement::new(Verdict::Inconclusive, reason.clone());
        // What held, held because nothing came.
        outcome.times = TryCounts::default();
    }
}

/// Gives the outcomes of cases whose dependencies do not hold the verdict that says so.
pub fn resolve_dependencies(outcomes: &mut [Outcome]) {
    let cases: Vec<Case> = outcomes.iter().map(|outcome| (*outcome.case).clone()).collect();
    let mut judged: BTreeMap<String, Judgement> =
        outcomes.iter().map(|outcome| (outcome.case.name.clone(), outcome.judgement.clone())).collect();
    resolve(&cases, &mut judged);
    for outcome in outcomes {
        if let Some(judgement) = judged.remove(&outcome.case.name) {
            outcome.judgement = judgement;
        }
    }
}

/// One try of one case; `turn` is active while messages are exchanged.
pub(crate) async fn run_try(
    case: Rc<Case>,
    target: &Target,
    origin: &Rc<Origin>,
    pause: Duration,
    mut turn: ActiveTry,
) -> Outcome {
    let attempt = origin.begin(&case, target.scheme(), &target.host);
    let (observations, late) = exchanges(&attempt, target, pause, &mut turn).await;
    origin.end(&attempt);
    // A stall of this process looks like one of the target.
    let is_disturbed = origin.stalled_during(&attempt);
    let last = case.steps.len().saturating_sub(1);
    let late = match is_disturbed {
        true => Some((last, "Assay itself stood still meanwhile, for more than two seconds".to_owned())),
        false => late,
    };
    let findings: Vec<Finding> = match late {
        // Steps before the one that was late are as if met, for the verdict to be about that one.
        Some((step, why)) => (0..=step)
            .map(|index| if index == step { Finding::Inconclusive(why.clone()) } else { Finding::Met })
            .collect(),
        None => (0..)
            .zip(&case.steps)
            .map(|(index, step)| check(step, index, &observations, &attempt.values))
            .collect(),
    };
    let mut judgement = judge(&case, &findings);
    let ended = observations.iter().flat_map(|step| &step.received).any(Received::is_bare_end);
    judgement.is_doubtful = judgement.verdict.holds() && ended;
    judgement.is_disturbed = is_disturbed;
    let times = TryCounts::of(judgement.verdict);
    Outcome { case, judgement, observations, tries: 1, times }
}

/// The steps in order: what was seen, and which one came too late.
async fn exchanges(
    attempt: &Rc<Try>,
    target: &Target,
    pause: Duration,
    turn: &mut ActiveTry,
) -> (Vec<Observation>, Option<(usize, String)>) {
    let mut client = Client::default();
    let mut observations: Vec<Observation> = Vec::new();
    let mut late = None;
    for (index, step) in attempt.case.steps.iter().enumerate() {
        if index > 0 {
            turn.pause(pause, Duration::from_secs_f64(step.wait_s)).await;
            let before = observations
                .last()
                .and_then(|last| last.received.first())
                .map_or(0.0, |received| received.end_ms);
            let passed_s = (attempt.now_ms() - before) / 1000.0;
            if late.is_none() && step.within_s.is_some_and(|most| passed_s > most) {
                late = Some((
                    index,
                    format!(
                        "it was sent {passed_s:.1} s after the step before it, which is too late to say anything"
                    ),
                ));
            }
        }
        attempt.step.set(index);
        let values = attempt.values_now();
        let lingers = step.expect.closes
            || step.expect.body_lacks.is_some()
            || step.expect.body_has.is_some()
            || !step.expect.frames.is_empty()
            || attempt.case.isolated;
        let sent = encode_request(&step.request, lingers, &values, target.is_forward);
        let sent_ms = attempt.now_ms();
        let exchange = copies(&mut client, step.copies, step.request.new_connection, target, &sent, attempt);
        let received = turn.run_until(exchange).await;
        observations.push(Observation {
            sent_frames: sent.frames(),
            sent: sent.bytes,
            sent_ms,
            received,
            arrivals: Vec::new(),
            origin_body: body(&step.origin, index, &values),
        });
        // Whoever does not respond once will not be waited for again and again.
        let hangs = observations
            .last()
            .and_then(|last| last.received.first())
            .is_some_and(|got| got.problem.is_some() && !got.is_over());
        if late.is_some() || hangs {
            break;
        }
    }
    // Requests that the target makes by itself may still be on their way.
    sleep(pause.min(SETTLE)).await;
    for (index, observation) in observations.iter_mut().enumerate() {
        observation.arrivals = attempt.arrivals(index);
        if target.is_forward {
            in_origin_form(&mut observation.arrivals, &attempt.values.host);
        }
    }
    (observations, late)
}

/// A forward proxy sends the whole URL where the origin is a parent to it: cases look at its path. The bytes stay as evidence.
fn in_origin_form(arrivals: &mut [Arrival], host: &str) {
    for arrival in arrivals {
        arrival.request.start = arrival.request.start.replacen(&format!(" http://{host}/"), " /", 1);
    }
}

/// Sends a request as often as the step says, each copy but the first on a connection of its own.
async fn copies(
    client: &mut Client,
    copies: u32,
    is_new: bool,
    target: &Target,
    sent: &EncodedRequest,
    attempt: &Rc<Try>,
) -> Vec<Received> {
    let now_ms = || attempt.now_ms();
    let mut others = JoinSet::new();
    // Copies have to be under way together, which those on one connection need not be.
    for _ in 1..copies {
        let (sent, attempt, endpoint) = (sent.clone(), Rc::clone(attempt), target.endpoint());
        others.spawn_local(async move {
            Client::default().exchange(&endpoint, &sent, true, &|| attempt.now_ms()).await
        });
    }
    let mut all = vec![client.exchange(&target.endpoint(), sent, is_new, &now_ms).await];
    while let Some(other) = others.join_next().await {
        all.extend(other);
    }
    all
}
