//! Credentials, cookies and sessions of robots.

use assay_workload::model::{CookieKeeping, Credentials, Distribution, Session, UserRun};

use super::Builder;
use crate::diagnostic::{Code, Diagnostic};
use crate::source::Span;
use crate::value::array::MAX_ITEMS;
use crate::value::pattern::Pattern;
use crate::value::{Record, Value};

/// Default number of cookies that a robot keeps for each origin.
const COOKIES_KEPT: f64 = 4.0;

impl Builder<'_> {
    /// `credentials` and `auth_error`.
    pub(super) fn credentials(&mut self, record: &Record) -> Credentials {
        let wrong_share = self.share(record, "auth_error").unwrap_or(0.0);
        let Some((array, span)) = self.array(record, "credentials") else {
            if wrong_share > 0.0 && record.get("credentials").is_none() {
                self.warn(
                    Code::NoEffect,
                    self.field_span(record, "auth_error"),
                    "`auth_error` has no effect",
                    "these robots have no `credentials`, so they are anonymous",
                );
            }
            return Credentials { users: vec![], wrong_share };
        };
        let Some(runs) = array.runs() else {
            self.error(Code::TooMany, span, "these are too many users", "they cannot be listed");
            return Credentials::default();
        };
        let mut users = Vec::new();
        for run in runs {
            let Value::Text(pattern) = &run.value else { continue };
            let at = if run.span == Span::default() { span } else { run.span };
            for _ in 0..run.times {
                if users.len() as u64 > MAX_ITEMS || !self.add_users(&mut users, pattern, at) {
                    return Credentials::default();
                }
            }
        }
        Credentials { users, wrong_share }
    }

    /// Adds the users of a pattern; false after an error.
    fn add_users(&mut self, users: &mut Vec<UserRun>, pattern: &Pattern, span: Span) -> bool {
        if let Some((realm, count)) = pattern.generated_users() {
            let Ok(count) = u32::try_from(count) else { return false };
            users.push(UserRun::Made { count, realm: realm.to_owned() });
            return true;
        }
        if pattern.count() > MAX_ITEMS {
            self.error(
                Code::TooMany,
                span,
                "these are too many users",
                format!("at most {MAX_ITEMS} that are written out; `credentials(n, realm)` makes more"),
            );
            return false;
        }
        for index in 0..pattern.count() {
            let credentials = pattern.nth(index).to_string().replace("${worker}", "1");
            let Some((user, password)) = credentials.split_once(':').filter(|(user, _)| !user.is_empty())
            else {
                self.diagnostics.add(
                    Diagnostic::error(Code::BadLiteral, span, "these are no credentials")
                        .label(format!("\"{credentials}\"; expected \"user:password\"")),
                );
                return false;
            };
            users.push(UserRun::One { user: user.to_owned(), password: password.to_owned() });
        }
        true
    }

    /// `cookie_sender` and `cookies_keep_lmt`.
    pub(super) fn cookie_keeping(&mut self, record: &Record) -> CookieKeeping {
        CookieKeeping {
            share: self.share(record, "cookie_sender").unwrap_or(1.0),
            limit: self
                .distribution(record, "cookies_keep_lmt")
                .unwrap_or(Distribution::Constant(COOKIES_KEPT)),
        }
    }

    /// `session`; none for robots that are always busy.
    pub(super) fn session(&mut self, owner: &Record) -> Option<Session> {
        let record = self.object(owner, "session")?;
        let span = self.field_span(owner, "session");
        self.warn_unsupported_fields(record);
        let idle_given = record.get("idle_period_duration").is_some();
        let Some(busy) = self.object(record, "busy_period") else {
            if idle_given {
                self.require(
                    record,
                    "busy_period",
                    span,
                    "say when robots become idle: `busy_period.duration = 5min;`",
                );
            }
            return None;
        };
        let help = "say how long robots are idle: `idle_period_duration = exp(1min);`";
        if !self.require(record, "idle_period_duration", span, help) {
            return None;
        }
        let goal = super::goal(busy, self.diagnostics);
        for (field, set) in [("fill_size", goal.fill_bytes.is_some()), ("errors", goal.errors.is_some())] {
            if set {
                let at = self.field_span(busy, field);
                self.warn_unsupported(
                    &format!("Session.busy_period.{field}"),
                    at,
                    "a busy period ends by time or transactions",
                );
            }
        }
        if goal.duration.is_none() && goal.transactions.is_none() {
            let broken = ["duration", "xactions"].iter().any(|field| busy.get(field).is_some());
            if !broken {
                self.error(
                    Code::Required,
                    self.field_span(record, "busy_period"),
                    "this busy period never ends",
                    "`duration` or `xactions` must be set",
                );
            }
            return None;
        }
        let idle_s = self.distribution(record, "idle_period_duration")?;
        let busy = assay_workload::model::Goal { fill_bytes: None, errors: None, ..goal };
        Some(Session { busy, idle_s })
    }
}
