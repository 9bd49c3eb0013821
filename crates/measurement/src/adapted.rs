//! What load that adapts came to. Decisions of the robots' conductor, as they report them and as the run directory keeps
//! them.

use serde::{Deserialize, Serialize};

/// What was decided.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Load, Self::Population, Self::End, Self::Print];

    /// Its name in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Population => "population",
            Self::End => "end",
            Self::Print => "print",
        }
    }
}

/// One decision.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Adapted {
    /// When it takes effect, in milliseconds since the start of the run.
    pub at_ms: u64,
    /// How much of the schedule the phase had taken by then, in nanoseconds.
    pub schedule_ns: u64,
    /// Index of the phase.
    pub phase: u16,
    /// What.
    pub what: Decided,
    /// The load factor or the share of robots alive from then on; 0 for other decisions.
    pub value: f64,
    /// Mean response time since the decision before, in microseconds; none: there were no answers.
    pub response_us: Option<u64>,
    /// What a script printed.
    pub text: String,
}
