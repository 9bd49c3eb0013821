//! Decisions on adaptive load, as the robots' coordinator reports them and as the run directory keeps them.

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};

use crate::declared::{Kind, Measure, Value};
use crate::series;

/// A decision on adaptive load.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Decided {
    /// Another load factor.
    #[default]
    Load,
    /// Another share of robots alive.
    Population,
    /// The end of the phase.
    End,
    /// Nothing: a script printed a line.
    Print,
}

impl Decided {
    /// Name in records.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl Measure for Decided {
    const KIND: Kind = Kind::Text;

    fn value(&self) -> Value<'_> {
        Value::Text(self.name())
    }

    fn set(&mut self, value: Value<'_>) -> bool {
        let Value::Text(name) = value else { return false };
        name.parse().map(|decided| *self = decided).is_ok()
    }
}

series! {
    /// One decision.
    pub struct Adapted {
        at_ms: u64 = "when it takes effect, in milliseconds since the start of the run";
        phase: u16 = "index into `phases` of run.json";
        schedule_ns: u64 = "how much of the schedule the phase had taken by then, in nanoseconds";
        what: Decided = "`load`, `population`, `end` (of the phase) or `print`";
        value: f64 = "the load factor, or the share of robots alive, from then on";
        response_us: Option<u64> =
            "mean response time since the decision before, in microseconds; null: there were no responses";
        text: String = "what a script printed";
    }
}
