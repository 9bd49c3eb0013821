//! What was seen of a step, held against what the case expects. Pure.

use crate::case::{Expect, ExpectedSource, FieldCondition, FieldTest, Response, Step};
use crate::http2::frame::matches;
use crate::message::Message;
use crate::observe::{Arrival, Observation, Received};
use crate::template::{Values, with_values};

/// Result of checking a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// As expected.
    Met,
    /// Not as expected: the observation.
    Unmet(String),
    /// Not served from the store: the target requested it from the origin, as a cache always may. The observation.
    Fetched(String),
    /// Not received while the client waited, which may have been too short on a busy machine: the observation.
    Absent(String),
    /// The target refused the request by itself, so that what the case looks for never happened: how.
    Refused(String),
    /// Nothing can be concluded: the reason.
    Inconclusive(String),
}

/// Name of the field by which the origin says which step its response was made in.
pub const STEP_FIELD: &str = "X-Step";

/// Holds the step numbered `index` (from 0) against what was seen so far.
pub fn check(step: &Step, index: usize, observations: &[Observation], values: &Values) -> Finding {
    let Some(observation) = observations.get(index) else {
        return Finding::Inconclusive("it was not tried".to_owned());
    };
    let expect = &step.expect;
    if *expect == Expect::default() {
        // Whatever came of it: only who never gets a response cannot go on.
        let hangs = observation
            .received
            .first()
            .is_some_and(|received| received.problem.is_some() && !received.is_over());
        let why = no_response(step, observation).filter(|_| hangs).or_else(|| own_error(step, observation));
        return why.map_or(Finding::Met, Finding::Inconclusive);
    }
    // Without a connection there is nothing that could be as expected or not.
    if let Some(problem) = unreached(observation) {
        return Finding::Inconclusive(problem);
    }
    // A refusal is everything that such a step expects.
    if expect.refused {
        return match check_refusal(observation) {
            Finding::Inconclusive(why) if expect.responds => Finding::Absent(why),
            finding => finding,
        };
    }
    if expect.or_refused && check_refusal(observation) == Finding::Met {
        return Finding::Met;
    }
    if let Some(never) = &expect.never {
        let part = with_values(never, values);
        if let Some(arrival) = observations
            .iter()
            .flat_map(|step| &step.arrivals)
            .find(|arrival| contains(head(&arrival.bytes), &part))
        {
            return Finding::Unmet(format!(
                "a request with `{part}` reached the origin: {}",
                arrival.request.start
            ));
        }
    }
    if let Some(found) = check_forwarded(expect, observation, values) {
        return found;
    }
    if let Some(found) = check_absent_bytes(expect, observation, values) {
        return found;
    }
    if let Some(found) = check_frames(expect, observation) {
        return found;
    }
    // What the origin and the frames show was decided above, without a response.
    if let Some(why) = no_response(step, observation) {
        return without_response(expect, observation, why);
    }
    let Some(response) = observation.response() else {
        return Finding::Inconclusive("no response".to_owned());
    };
    let is_about_response = !(expect.incomplete || only_negative(expect) || only_of_the_origin(expect));
    if let Some(why) = own_error(step, observation).filter(|_| is_about_response && expect.status.is_empty())
    {
        return Finding::Inconclusive(why);
    }
    check_response(expect, observation, response, values)
        .or_else(|| check_body_source(expect, step, observations, index))
        .unwrap_or(Finding::Met)
}

/// Reason for which no connection could be made.
fn unreached(observation: &Observation) -> Option<String> {
    let received = observation.received.first()?;
    if received.is_bare_end() && received.frames.is_empty() {
        return Some("the connection ended before a frame came".to_owned());
    }
    let problem = received.problem.as_deref().unwrap_or_default();
    received.unreached.then(|| format!("no connection: {problem}"))
}

/// An error of the target's own making in place of the origin's response, which was whole and no error: it shows neither what the
/// target does with such a response, nor that it has stored it. (A 206 may be wrong for its request, and an error then right.)
fn own_error(step: &Step, observation: &Observation) -> Option<String> {
    let status = observation.response().filter(|own| own.value(STEP_FIELD).is_none())?.status();
    let is_whole = |response: &Response| response.raw.is_none() && response.cut.is_none();
    let may_be_sent = [Some(&step.origin), step.validated.as_ref(), step.part.as_ref()];
    let of_origin = observation.before_response().last()?.status;
    let is_own = status >= 500
        && matches!(of_origin, 1..=205 | 207..=499)
        && may_be_sent.into_iter().flatten().all(is_whole);
    is_own.then(|| {
        format!("the target made the response itself: {status}, where the origin responded with {of_origin}")
    })
}

/// Checks what came over HTTP/2 beside the response, or instead of it; none: the response decides.
fn check_frames(expect: &Expect, observation: &Observation) -> Option<Finding> {
    let received = observation.received.first()?;
    let unmet = |text: String| Some(Finding::Unmet(text));
    let came = |patterns: &[String]| {
        received.frames.iter().find(|line| patterns.iter().any(|pattern| matches(line, pattern)))
    };
    let first = |line: &String| line.lines().next().unwrap_or_default().to_owned();
    if let Some(line) = came(&expect.not_frames) {
        return unmet(format!("the frame `{}` came", first(line)));
    }
    if let Some(fault) = received.fault.as_ref().filter(|_| expect.well_formed) {
        return unmet(fault.clone());
    }
    if !expect.frames.is_empty() && came(&expect.frames).is_none() {
        let all: Vec<String> = received.frames.iter().map(first).collect();
        let why = format!("no frame `{}` came, but: {}", expect.frames.join("` or `"), all.join(", "));
        // What is over brings nothing more.
        return Some(if received.is_over() { Finding::Unmet(why) } else { Finding::Absent(why) });
    }
    let is_of_frames = expect.ends || !expect.frames.is_empty() || !received.frames.is_empty();
    if expect.ends && !received.is_over() {
        return Some(Finding::Absent("neither the stream nor the connection ended".to_owned()));
    }
    if is_of_frames && expect.closes && !received.ends_connection() {
        return Some(Finding::Absent("the connection stayed open".to_owned()));
    }
    // Expectations that frames do not decide.
    let others = Expect {
        frames: Vec::new(),
        not_frames: Vec::new(),
        ends: false,
        closes: false,
        never: None,
        or_refused: false,
        ..expect.clone()
    };
    (is_of_frames && others == Expect::default()).then_some(Finding::Met)
}

/// Result of a step without a response.
fn without_response(expect: &Expect, observation: &Observation, why: String) -> Finding {
    let is_closed =
        observation.received.first().is_some_and(|received| received.is_over() && received.bytes.is_empty());
    let interim = observation.received.first().and_then(|received| received.interim.first());
    match interim {
        // That the response breaks off before its head is what such a case looks for.
        _ if expect.incomplete || only_of_the_origin(expect) => Finding::Met,
        _ if is_closed && only_negative(expect) => Finding::Met,
        Some(status) => {
            let why = format!("after the interim response {status} no final one came");
            let is_over = observation.received.first().is_some_and(Received::is_over);
            if is_over { Finding::Unmet(why) } else { Finding::Absent(why) }
        }
        None if expect.responds => Finding::Absent(why),
        None => Finding::Inconclusive(why),
    }
}

/// Checks that the client did not get some bytes, in a response or not.
fn check_absent_bytes(expect: &Expect, observation: &Observation, values: &Values) -> Option<Finding> {
    let part = expect.body_lacks.as_ref().map(|part| with_values(part, values))?;
    let received = observation.received.first()?;
    contains(&received.bytes, &part).then(|| Finding::Unmet(format!("what the client got contains `{part}`")))
}

/// Reason for which a step has no response that could be checked.
fn no_response(step: &Step, observation: &Observation) -> Option<String> {
    let received = observation.received.first()?;
    match (&received.response, &received.problem) {
        (Some(response), None) if response.status() > 0 => None,
        (Some(response), None) => Some(format!("what came is not HTTP: {}", response.start)),
        (Some(_), Some(_)) if step.expect.incomplete => None,
        (_, problem) => Some(problem.clone().unwrap_or_else(|| "no response".to_owned())),
    }
}

/// True where a response is expected not to be something, and an end of the connection without one is not that either.
fn only_negative(expect: &Expect) -> bool {
    let negative = Expect {
        not_from: expect.not_from.clone(),
        not_status: expect.not_status.clone(),
        body_lacks: expect.body_lacks.clone(),
        never: expect.never.clone(),
        well_formed: expect.well_formed,
        or_refused: expect.or_refused,
        ..Expect::default()
    };
    *expect == negative
}

/// True where everything that is expected was seen at the origin.
fn only_of_the_origin(expect: &Expect) -> bool {
    let origin_only = Expect {
        forwarded: expect.forwarded.clone(),
        target: expect.target.clone(),
        method: expect.method.clone(),
        upload: expect.upload.clone(),
        most_requests: expect.most_requests,
        least_requests: expect.least_requests,
        never: expect.never.clone(),
        or_refused: expect.or_refused,
        ..Expect::default()
    };
    *expect == origin_only
}

fn check_refusal(observation: &Observation) -> Finding {
    if let Some(arrival) = observation.arrivals.first() {
        return Finding::Unmet(format!("the request reached the origin: {}", arrival.request.start));
    }
    match observation.response().map(Message::status) {
        Some(status) if status < 400 => Finding::Unmet(format!("the response has status {status}")),
        None if observation.received.first().is_some_and(|received| !received.is_over()) => {
            Finding::Inconclusive("neither a response nor the end of the connection came".to_owned())
        }
        _ => Finding::Met,
    }
}

/// `1 request reached the origin`.
fn arrived(observation: &Observation) -> String {
    match observation.arrivals.len() {
        1 => "1 request reached the origin".to_owned(),
        many => format!("{many} requests reached the origin"),
    }
}

/// Checks the request that the origin got.
fn check_forwarded(expect: &Expect, observation: &Observation, values: &Values) -> Option<Finding> {
    let unmet = |text: String| Some(Finding::Unmet(text));
    if let Some(most) = expect.most_requests
        && observation.arrivals.len() > most
    {
        return unmet(arrived(observation));
    }
    if let Some(least) = expect.least_requests
        && observation.arrivals.len() < least
    {
        return Some(Finding::Absent(format!("{}, not {least}", arrived(observation))));
    }
    let looks_at_request = !expect.forwarded.is_empty()
        || expect.target.is_some()
        || expect.method.is_some()
        || expect.upload.is_some();
    if !looks_at_request {
        return None;
    }
    // A client error refuses the request; a server error, or nothing, leaves open what would have been sent.
    let Some(Arrival { request, .. }) = observation.arrivals.first() else {
        let status = observation.response().map(Message::status);
        let text = status.map_or_else(String::new, |status| format!("; status {status}"));
        let why = format!("no request reached the origin{text}");
        return Some(match status {
            None if expect.responds => Finding::Absent(why),
            Some(400..=499) => Finding::Refused(why),
            _ => Finding::Inconclusive(why),
        });
    };
    for test in &expect.forwarded {
        if let Some(words) = field_fails(test, request, values) {
            return unmet(format!("the request that reached the origin {words}"));
        }
    }
    let equal = [
        ("target", expect.target.as_deref(), request.target().to_owned()),
        ("method", expect.method.as_deref(), request.method().to_owned()),
        ("body", expect.upload.as_deref(), String::from_utf8_lossy(&request.body).into_owned()),
    ];
    for (what, wanted, got) in equal {
        if let Some(wanted) = wanted.map(|wanted| with_values(wanted, values))
            && wanted != got
        {
            return unmet(format!(
                "the request that reached the origin has the {what} `{got}`, not `{wanted}`"
            ));
        }
    }
    None
}

/// Checks the response that the client got.
fn check_response(
    expect: &Expect,
    observation: &Observation,
    response: &Message,
    values: &Values,
) -> Option<Finding> {
    let status = response.status();
    let is_own = response.value(STEP_FIELD).is_none();
    if let Some(found) = expect.served.and_then(|wanted| check_source(wanted, observation, status, is_own)) {
        return Some(found);
    }
    let unmet = |text: String| Some(Finding::Unmet(text));
    if !expect.status.is_empty() && !expect.status.contains(&status) {
        return unmet(format!("the response has status {status}, not {}", joined(&expect.status)));
    }
    if expect.not_status.contains(&status) {
        return unmet(format!("the response has status {status}"));
    }
    for test in &expect.fields {
        if let Some(words) = field_fails(test, response, values) {
            return unmet(format!("the response {words}"));
        }
    }
    if let Some(missing) = expect.interim.iter().find(|status| !response.interim.contains(status)) {
        return unmet(format!("the interim response {missing} did not come"));
    }
    let received = observation.received.first()?;
    if expect.incomplete && response.is_complete && status < 500 {
        return unmet("the response looks complete, and the origin's was cut off".to_owned());
    }
    if !expect.incomplete && !response.is_complete {
        return unmet(format!("the body is incomplete: it ended after {} bytes", response.body.len()));
    }
    if expect.closes && !received.ends_connection() {
        return Some(Finding::Absent("the connection stayed open".to_owned()));
    }
    if let Some(wanted) = expect.body.as_ref().map(|body| with_values(body, values))
        && response.body != wanted.as_bytes()
    {
        return unmet(format!("the body is `{}`, not `{wanted}`", short(&response.body)));
    }
    if let Some(part) = expect.body_has.as_ref().map(|part| with_values(part, values))
        && !contains(&received.bytes, &part)
    {
        return unmet(format!("what the client got does not contain `{part}`"));
    }
    None
}

/// Checks the source of the response.
fn check_source(
    wanted: ExpectedSource,
    observation: &Observation,
    status: u16,
    is_own: bool,
) -> Option<Finding> {
    let reached: Vec<&Arrival> = observation.before_response().collect();
    let conditional = reached.iter().any(|arrival| arrival.request.is_conditional());
    let unmet = |text: &str| Some(Finding::Unmet(text.to_owned()));
    match wanted {
        ExpectedSource::Store => match reached.first() {
            Some(arrival) => Some(Finding::Fetched(format!(
                "the response came after a request to the origin: {}",
                arrival.request.start
            ))),
            // An error that the origin has not sent is the target's own.
            None if status >= 500 && is_own => {
                Some(Finding::Inconclusive(format!("the target responded with status {status}")))
            }
            None => None,
        },
        _ if reached.is_empty() && status >= 400 && is_own => {
            let why = format!("no request reached the origin; the target responded with status {status}");
            // Its own 5xx may be a matter of the moment.
            Some(if status < 500 { Finding::Refused(why) } else { Finding::Inconclusive(why) })
        }
        _ if reached.is_empty() => unmet("the response came from the store"),
        ExpectedSource::Validated if !conditional => {
            unmet("the request that reached the origin has no condition")
        }
        ExpectedSource::Fetched if conditional => {
            unmet("the request that reached the origin has a condition")
        }
        ExpectedSource::Validated | ExpectedSource::Fetched | ExpectedSource::Origin => None,
    }
}

/// Checks which step's response the body is from.
fn check_body_source(
    expect: &Expect,
    step: &Step,
    observations: &[Observation],
    index: usize,
) -> Option<Finding> {
    if expect.from.is_empty() && expect.not_from.is_empty() {
        return None;
    }
    let response = observations.get(index)?.response()?;
    let found = made_in(response, step.request.method == "HEAD", observations);
    let is_bodiless = step.request.method == "HEAD" || matches!(response.status(), 204 | 304);
    // A 304 replaces the fields of what is stored, the mark among them.
    let is_of_validation = |step: &usize| {
        let marked = step.checked_sub(1).and_then(|index| observations.get(index));
        let arrivals = marked.into_iter().flat_map(|step| &step.arrivals);
        is_bodiless && arrivals.last().is_some_and(|arrival| arrival.status == 304)
    };
    let is_as_expected = |step: &usize| expect.from.contains(step) && !expect.not_from.contains(step);
    if let Some(step) = found.filter(|step| !is_as_expected(step) && is_of_validation(step)) {
        let why = format!("the response has the mark of step {step}, whose 304 has replaced that of another");
        return Some(Finding::Inconclusive(why));
    }
    let words = |found: Option<usize>| match found {
        Some(step) => format!("the response is the one of step {step}"),
        None => format!("the response is none of the origin's: status {}", response.status()),
    };
    match found {
        Some(step) if expect.not_from.contains(&step) => Some(Finding::Unmet(words(found))),
        _ if expect.from.is_empty() => None,
        Some(step) if expect.from.contains(&step) => None,
        None if response.status() >= 500 => Some(Finding::Inconclusive(words(found))),
        _ => Some(Finding::Unmet(format!("{}, not that of step {}", words(found), joined(&expect.from)))),
    }
}

/// The step (from 1) in which the origin made a response: by its body, or by its mark where it can have none. A mark on an empty
/// body proves nothing otherwise: a stored 304 may have been made a 200.
fn made_in(response: &Message, is_head: bool, observations: &[Observation]) -> Option<usize> {
    let marked = response.value(STEP_FIELD).and_then(|step| step.parse::<usize>().ok());
    if is_head || matches!(response.status(), 204 | 304) {
        return marked;
    }
    let index = observations.iter().rposition(|step| step.origin_body == response.body)?;
    // Steps may have the same body: then their mark decides.
    let same =
        |step: &usize| observations.get(step - 1).is_some_and(|other| other.origin_body == response.body);
    Some(marked.filter(|step| *step > 0 && same(step)).unwrap_or(index + 1))
}

/// Description of a condition on a field that a message does not meet.
fn field_fails(test: &FieldTest, message: &Message, values: &Values) -> Option<String> {
    let name = &test.name;
    let all: Vec<&str> = message.values(name).collect();
    let number = || all.first().and_then(|value| value.parse::<i64>().ok());
    let actual =
        if all.is_empty() { format!("has no {name}") } else { format!("has `{name}: {}`", all.join(", ")) };
    let (is_met, wanted) = match &test.test {
        FieldCondition::Present => (!all.is_empty(), String::new()),
        FieldCondition::Is(wanted) => {
            let wanted = with_values(wanted, values);
            let joined = all.join(", ");
            let member = joined.split(',').any(|member| member.trim().eq_ignore_ascii_case(&wanted));
            (all.contains(&wanted.as_str()) || joined == wanted || member, format!(", not `{wanted}`"))
        }
        FieldCondition::Contains(part) => {
            let part = with_values(part, values);
            (all.iter().any(|value| plain(value).contains(&plain(&part))), format!(", without `{part}`"))
        }
        FieldCondition::Least(least) => {
            (number().is_some_and(|number| number >= *least), format!(", not at least {least}"))
        }
        FieldCondition::Most(most) => {
            (number().is_some_and(|number| number <= *most), format!(", not at most {most}"))
        }
    };
    match (is_met, test.negated) {
        (true, false) | (false, true) => None,
        (false, false) => Some(format!("{actual}{wanted}")),
        (true, true) => Some(actual),
    }
}

/// Without regard to case, and to the spaces that a parameter may have in front.
fn plain(value: &str) -> String {
    value.to_ascii_lowercase().split(';').map(str::trim_start).collect::<Vec<_>>().join(";")
}

/// The bytes of a message up to its body: what a body contains is nobody's request.
fn head(bytes: &[u8]) -> &[u8] {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    end.map_or(bytes, |end| &bytes[..end + 4])
}

/// Without regard to case: a target may write the names of fields in lower case.
fn contains(bytes: &[u8], part: &str) -> bool {
    !part.is_empty() && bytes.windows(part.len()).any(|window| window.eq_ignore_ascii_case(part.as_bytes()))
}

fn joined<T: ToString>(all: &[T]) -> String {
    all.iter().map(T::to_string).collect::<Vec<_>>().join(" or ")
}

fn short(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let cut: String = text.chars().take(60).collect();
    if cut.len() < text.len() { format!("{cut}…") } else { cut }
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
