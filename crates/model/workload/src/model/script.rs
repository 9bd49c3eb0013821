//! What a phase's script says: a small language of its own, compiled from PGL, run by the robots' conductor.
//!
//! Everything that can be known when the workload is compiled has been computed by then; what is left depends
//! on measurements: the statistics of a sample, the factors that are on. The evaluator is [`crate::script`].
//! Scripts move the clock of a phase (its load), its population, or end it; never the stream.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Goal;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Script(pub Vec<ScriptStatement>);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScriptStatement {
    /// Gives a variable a value. Variables live as long as the phase.
    Set { variable: u16, value: ScriptExpr },
    /// Takes a copy of the statistics into a sample variable.
    TakeSample {
        variable: u16,
        /// True: since the phase began (`currentPhase`); false: of the sample of the block around it.
        whole_phase: bool,
    },
    /// One way or the other.
    If { condition: ScriptExpr, then: Vec<ScriptStatement>, otherwise: Vec<ScriptStatement> },
    /// Runs its body whenever a sample has reached one of these goals; then the sample starts anew.
    Every {
        /// The goals of a sample.
        goal: Goal,
        body: Vec<ScriptStatement>,
    },
    /// `setLoadFactorTo` (or `changeLoadFactorBy`, when relative).
    Load {
        /// The factor, or the change.
        value: ScriptExpr,
        /// True: the present factor × (1 + value).
        relative: bool,
    },
    /// The same for the population.
    Population {
        /// The factor, or the change.
        value: ScriptExpr,
        /// True: relative.
        relative: bool,
    },
    /// `setSamplingGoalTo`: changes the goals of the block around it.
    SampleGoal(Goal),
    /// `print`: the parts are put together.
    Print(Vec<ScriptExpr>),
    /// `reachedPositiveGoal`: the phase ends.
    EndPhase,
}

/// A value: a number (times in seconds, sizes in bytes, truth as 0 or 1), or text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScriptExpr {
    Number(f64),
    /// A time, printed with its unit.
    Time(Duration),
    /// Text, for printing.
    Text(String),
    Variable(u16),
    /// A statistic of a sample variable, by its dotted name (`rep.rptm.mean`), in seconds, bytes, per second, percent
    /// or a count; standard deviations of times in milliseconds.
    Statistic {
        sample: u16,
        name: String,
    },
    /// `currentLoadFactor()`.
    LoadFactor,
    /// `currentPopulusFactor()`.
    PopulationFactor,
    /// `!`, `-`.
    Unary(char, Box<ScriptExpr>),
    /// `+ - * / % ^ == != < <= > >= && || ^^`, as written.
    Binary(String, Box<ScriptExpr>, Box<ScriptExpr>),
    /// `min` or `max`.
    Extreme {
        /// True: the greatest.
        greatest: bool,
        of: Vec<ScriptExpr>,
    },
}
