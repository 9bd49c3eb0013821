//! Judgement of the head of a response: its meaning for the xact, and the body that must follow.

use assay_http::date::parse_date;
use assay_http::head::ResponseHead;

use super::expected_body::ExpectedBody;
use super::features::ResponseKind;
use super::login::{ProtectionSpace, SentCredentials};
use super::memory::{RobotMemory, sets_cookies};
use super::response::HeadVerdict;
use super::response_error::ResponseError;
use super::setup::RobotSetup;
use super::special::{self, MOST_STEPS, classify};
use super::xact::Xact;
use crate::cache_fields::{CacheFields, ChangedFields};
use crate::check::{CheckError, CheckVerdict, ReceivedHead, judge_head, judge_status};
use crate::tally::flights::OriginResidence;
use assay_protocol::clock::RunClock;
use assay_workload::mark::{ResponseMark, ResponseNote};
use assay_workload::{Login, XactId};

/// Fields for caches are compared in the first responses of each robot, and later in one of so many: a target that changes them does
/// so by a rule, which some of its responses show as well as all.
const FIELDS_COMPARED_FIRST: u64 = 4;
const FIELDS_COMPARED_EVERY: u64 = 64;

/// Judges the head of one response.
#[derive(Debug)]
pub struct HeadJudge<'a> {
    pub setup: &'a RobotSetup,
    pub clock: RunClock,
    /// Arrival of the head.
    pub now_ns: u64,
    /// The xact of the response.
    pub xact: &'a mut Xact,
    /// Memory of the xact's robot.
    pub memory: &'a mut Option<Box<RobotMemory>>,
    /// Cookies that were taken from the head.
    pub cookies_taken: u64,
}

impl HeadJudge<'_> {
    /// Judges the head; `mark` is the value of our field in it.
    pub fn judge(
        &mut self,
        head: &ResponseHead<'_>,
        mark: Option<&[u8]>,
    ) -> Result<HeadVerdict, ResponseError> {
        let Self { setup: RobotSetup { universe, .. }, clock, .. } = *self;
        let response = self.read_head(head, mark);
        let requested = self.xact.requested(self.sent_us(), self.setup);
        if let Some(mark) = &response.mark {
            self.note_origin_times(mark);
            judge_status(&requested, head.status, mark)?;
        }
        if let Some(kind) = classify(universe, self.xact, head, response.mark.as_ref())? {
            let is_of_origin = response.mark.is_some();
            let kind = match kind {
                ResponseKind::Refused => self.respond_to_challenge(head, is_of_origin)?,
                kind => kind,
            };
            let verdict = CheckVerdict::NOT_OF_OBJECT;
            return Ok(HeadVerdict { verdict, kind, origin_aborts: false, payload: ExpectedBody::remark() });
        }
        let now_us = clock.since_start_us(self.now_ns);
        let object = &self.xact.object;
        let life_at = |at_s: i64| universe.life(object, at_s);
        let vary_conflict = |made_for: XactId| universe.vary_conflict(made_for, self.xact.id, object);
        let verdict = judge_head(&requested, &response, now_us, life_at, vary_conflict);
        let verdict = verdict.map_err(|wrong| match wrong {
            // It has another length because of that.
            CheckError::Length { .. } if special::is_in_unrequested_coding(self.xact, head) => {
                CheckError::CodingUnrequested
            }
            wrong => wrong,
        })?;
        let verdict = CheckVerdict { changed_fields: self.changed_fields(head, response.mark), ..verdict };
        self.take_cookies(head);
        let origin_aborts =
            response.mark.is_some_and(|mark| matches!(mark.note, Some(ResponseNote::BreaksOff(_))));
        if let Some((kind, payload)) = special::payload(universe, self.xact, head, verdict.version)? {
            return Ok(HeadVerdict { verdict, kind, origin_aborts, payload });
        }
        let body = universe.body(&self.xact.object, verdict.version);
        let payload = ExpectedBody::whole(body, verdict.body_bytes.unwrap_or(0));
        Ok(HeadVerdict { verdict, kind: ResponseKind::Object, origin_aborts, payload })
    }

    /// Facts of the head that decide about it.
    fn read_head(&self, head: &ResponseHead<'_>, mark: Option<&[u8]>) -> ReceivedHead {
        let last_modified_s = match head.status {
            304 => head
                .header("Last-Modified")
                .and_then(parse_date)
                .map(|at_s| at_s as i64 - self.clock.start_unix_s as i64),
            _ => None,
        };
        ReceivedHead {
            status: head.status,
            mark: mark.and_then(ResponseMark::parse),
            content_length: head.facts.content_length,
            // A plain request costs no lookup: no coding is right for it.
            is_coded: self.xact.features.as_ref().is_some_and(|features| match head.status {
                // It need not name the coding of what it confirms.
                304 => features.takes_gzip || features.names_codings,
                _ => special::is_coded(head),
            }),
            last_modified_s,
        }
    }

    /// Fields for caches that are not as the origin sent them; none: they are not compared.
    #[inline]
    fn changed_fields(&self, head: &ResponseHead<'_>, mark: Option<ResponseMark>) -> Option<ChangedFields> {
        let XactId { robot, number, .. } = self.xact.id;
        let turn = number.wrapping_add(u64::from(robot));
        let is_compared = number < FIELDS_COMPARED_FIRST || turn.is_multiple_of(FIELDS_COMPARED_EVERY);
        match is_compared && self.setup.knows_cache_fields {
            true => Some(self.compare_fields(head, mark?)),
            false => None,
        }
    }

    #[cold]
    fn compare_fields(&self, head: &ResponseHead<'_>, mark: ResponseMark) -> ChangedFields {
        let made_s = (mark.made_us / 1_000_000) as i64;
        let life = self.setup.universe.life(&self.xact.object, made_s);
        let sent = CacheFields::of_origin(self.xact.object.cachable, &life);
        let received = CacheFields::of_head(head, self.clock.start_unix_s);
        received.changed_from(&sent, head.status == 304)
    }

    /// Instant of sending, in microseconds since the start of the run.
    fn sent_us(&self) -> u64 {
        self.clock.since_start_us(self.xact.sent_ns.unwrap_or(self.now_ns))
    }

    /// Takes the origin's own delay, and the time for which it had the request, from its mark.
    fn note_origin_times(&mut self, mark: &ResponseMark) {
        // Otherwise it made the response before it was asked for: it was stored.
        if mark.delay_us > 0 && mark.made_us >= self.sent_us() {
            // For this request, or for one that this one joined.
            self.xact.own.origin_us = mark.delay_us;
        }
        if mark.held_us > 0 && mark.xact == self.xact.id {
            let until_ns = self.clock.start_ns.saturating_add(mark.made_us.saturating_mul(1_000));
            let from_ns = until_ns.saturating_sub(1_000 * u64::from(mark.held_us));
            self.xact.at_origin = Some(OriginResidence { from_ns, until_ns });
        }
    }

    /// Responds to a challenge, if the robot has other credentials than those it sent. An error: no client could respond, or its right
    /// credentials did not reach the origin.
    fn respond_to_challenge(
        &mut self,
        head: &ResponseHead<'_>,
        is_of_origin: bool,
    ) -> Result<ResponseKind, CheckError> {
        let RobotSetup { universe, .. } = self.setup;
        let robot = self.xact.id.robot;
        let space = ProtectionSpace::from_status(head.status, self.xact.object.id.origin);
        let (Some(space), Some(features)) = (space, &mut self.xact.features) else {
            return Ok(ResponseKind::Refused);
        };
        let field = space.challenge_field();
        if head.header(field).is_none() {
            return Err(CheckError::NoChallenge { status: head.status, field });
        }
        if universe.is_anonymous(robot) {
            return Ok(ResponseKind::Refused);
        }
        let memory = self.memory.get_or_insert_with(|| Box::new(RobotMemory::new(robot)));
        let is_over = features.challenges >= MOST_STEPS;
        if !is_over && memory.on_challenge(universe, space, head, features.sent_credentials) {
            features.challenges += 1;
            return Ok(ResponseKind::Challenged);
        }
        let session = match features.sent_credentials {
            SentCredentials { origin: true, session, .. } => session,
            _ => memory.session(),
        };
        let is_proven = |login: Login| universe.password_of(&login.user) == Some(login.password);
        match is_of_origin && head.status == 401 && universe.login(robot, session).is_some_and(is_proven) {
            true => Err(CheckError::CredentialsLost),
            false => Ok(ResponseKind::Refused),
        }
    }

    fn take_cookies(&mut self, head: &ResponseHead<'_>) {
        let robot = self.xact.id.robot;
        if self.xact.features.is_none() || !sets_cookies(head) || !self.setup.universe.keeps_cookies(robot) {
            return;
        }
        let memory = self.memory.get_or_insert_with(|| Box::new(RobotMemory::new(robot)));
        let now_s = unix_second(&self.clock, self.now_ns);
        self.cookies_taken +=
            memory.take_cookies(&self.setup.universe, self.xact.object.id.origin, head, now_s);
    }
}

/// Second of the wall clock at an instant.
pub fn unix_second(clock: &RunClock, at_ns: u64) -> u64 {
    clock.start_unix_s.saturating_add(clock.since_start_us(at_ns) / 1_000_000)
}
