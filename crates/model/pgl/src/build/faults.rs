//! Injected faults, authentication and cookies of servers. The fields for faults are not in Web Polygraph.

use assay_workload::model::{AuthDemand, AuthScheme, CookieSetting, Distribution, Faults, Weighted};

use super::{Builder, active_slot};
use crate::diagnostic::{Code, Diagnostic};
use crate::source::Span;
use crate::value::Record;

impl Builder<'_> {
    /// `error_prob` and related fields.
    pub(super) fn faults(&mut self, record: &Record) -> Faults {
        let error_share = self.share(record, "error_prob").unwrap_or(0.0);
        let slow_start_share = self.share(record, "slow_start_prob").unwrap_or(0.0);
        let slow_body_share = self.share(record, "slow_body_prob").unwrap_or(0.0);
        let reset_share = self.share(record, "reset_prob").unwrap_or(0.0);
        self.check_dependents(record, error_share, "error_prob", &["error_statuses"], None);
        let late = Some("say how late: `slow_start = exp(2sec);`");
        self.check_dependents(record, slow_start_share, "slow_start_prob", &["slow_start"], late);
        let slow = Some("say how fast: `slow_body_bw = 100Kb/sec;`");
        self.check_dependents(record, slow_body_share, "slow_body_prob", &["slow_body_bw"], slow);
        if error_share + reset_share > 1.0 + 1e-9 {
            self.error(
                Code::Probabilities,
                self.field_span(record, "error_prob"),
                "more than 100% of the requests would fail",
                "`error_prob` and `reset_prob` must add up to at most 100%",
            );
        }
        let lifetime = active_slot(record, "xact_lifetime").filter(|_| record.get("xact_think").is_none());
        if let Some(slot) = lifetime {
            self.warn(
                Code::NoEffect,
                slot.span,
                "`xact_lifetime` has no effect",
                "`xact_think` is not set, so origins respond to every request at once",
            );
        }
        let zero = Distribution::Constant(0.0);
        let statuses = self.statuses(record);
        Faults {
            error_share,
            statuses,
            reset_share,
            slow_start_share,
            slow_start_s: self.distribution(record, "slow_start").unwrap_or(zero),
            slow_body_share,
            slow_body_bytes_per_s: self.quantity(record, "slow_body_bw", false).unwrap_or(0.0),
            lifetime_s: self.distribution(record, "xact_lifetime"),
            delay_per_active_s: self.quantity(record, "delay_per_active", true).unwrap_or(0.0),
        }
    }

    /// Reports fields that a share requires and that are missing, and warns about those without their share.
    fn check_dependents(
        &mut self,
        record: &Record,
        share: f64,
        name: &str,
        fields: &[&str],
        required: Option<&str>,
    ) {
        for field in fields {
            match (record.get(field), required) {
                (None, Some(help)) if share > 0.0 => {
                    let at = self.field_span(record, name);
                    self.diagnostics.add(
                        Diagnostic::error(Code::Required, at, format!("`{name}` needs `{field}`"))
                            .label(format!("`{field}` must be set too"))
                            .help(help),
                    );
                }
                (Some(slot), _)
                    if share <= 0.0 && record.get(name).is_none() && active_slot(record, field).is_some() =>
                {
                    self.warn(
                        Code::NoEffect,
                        slot.span,
                        format!("`{field}` has no effect"),
                        format!("`{name}` is not set, so it never happens"),
                    );
                }
                _ => {}
            }
        }
    }

    /// `error_statuses`: 400 to 599.
    fn statuses(&mut self, record: &Record) -> Weighted<u16> {
        let mut all = Vec::new();
        for choice in self.choices(record, "error_statuses") {
            let text = choice.value.to_string();
            match text.parse::<u16>() {
                Ok(status) if (400..600).contains(&status) => all.push((status, choice.probability)),
                _ => self.error(
                    Code::OutOfRange,
                    choice.span,
                    format!("\"{text}\" is no status of an error"),
                    "expected \"400\" to \"599\"",
                ),
            }
        }
        Weighted::new(all)
    }

    /// `auth_schemes` and related fields.
    pub(super) fn auth_demand(&mut self, record: &Record) -> Option<AuthDemand> {
        let known = [("Basic", AuthScheme::Basic), ("Digest", AuthScheme::Digest)];
        let schemes = self.keywords(record, "auth_schemes", &known);
        let Some(schemes) = schemes else {
            for field in ["auth_realm", "auth_prob"] {
                if let Some(slot) = active_slot(record, field)
                    && record.get("auth_schemes").is_none()
                {
                    self.warn(
                        Code::NoEffect,
                        slot.span,
                        format!("`{field}` has no effect"),
                        "`auth_schemes` is not set, so everybody may ask",
                    );
                }
            }
            return None;
        };
        Some(AuthDemand {
            schemes: schemes.items().iter().map(|(scheme, _)| *scheme).collect(),
            realm: self.text(record, "auth_realm").unwrap_or_else(|| "assay".to_owned()),
            share: self.share(record, "auth_prob").unwrap_or(1.0),
        })
    }

    /// `cookie_set_prob` and related fields.
    pub(super) fn cookie_setting(&mut self, record: &Record, span: Span) -> Option<CookieSetting> {
        let share = self.share(record, "cookie_set_prob").unwrap_or(0.0);
        let senders = self.share(record, "cookie_sender").unwrap_or(1.0);
        if share <= 0.0 {
            return None;
        }
        let counted =
            self.require(record, "cookie_set_count", span, "say how many: `cookie_set_count = const(2);`");
        let sized = self.require(
            record,
            "cookie_value_size",
            span,
            "say how long: `cookie_value_size = exp(20Byte);`",
        );
        let count = self.distribution(record, "cookie_set_count");
        let value_bytes = self.distribution(record, "cookie_value_size");
        if !counted || !sized || senders <= 0.0 {
            return None;
        }
        Some(CookieSetting { senders, share, count: count?, value_bytes: value_bytes? })
    }
}
