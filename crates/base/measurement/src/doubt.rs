//! The reasons to doubt that the numbers of a run are the target's alone. The closed list of reasons, and one found instance
//! of one.
//!
//! A reason is added here or nowhere: its name, its blame, why it matters and what to do are part of the list. Who looks
//! for them, and from which value on they count, is the business of `assay_host::verdict`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

/// Whose fault it is. What the workload or the target did wrong is a result, and no reason to doubt one.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
#[derive(IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Blame {
    /// Robots, origins or the command itself.
    #[default]
    Assay,
    /// The machine, its kernel and network, or a target that could not be started.
    Lab,
}

impl Blame {
    /// The word used in documents.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Every reason there is to doubt a run, worst first.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
#[derive(IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Reason {
    /// A role ended early, said nonsense, or its last report did not come.
    #[default]
    RoleFailed,
    /// The test bed could not be kept as planned.
    LabFailed,
    /// No file descriptor was left for a connection.
    Descriptors,
    /// No source port was left for a connection.
    Ports,
    /// A thread of a role stood still for longer than any response should wait for it.
    Stalled,
    /// Threads of a role were ready to run and had no processor.
    Starved,
    /// A role used its processors up: it was the limit.
    Saturated,
    /// Requests were sent late, or think times ended late.
    Late,
    /// Requests were not sent at all because Assay came to them after their phase.
    UnsentLate,
    /// Origins did not accept connections as fast as they came.
    AcceptBacklog,
    /// The kernel ran out of memory for sockets, or dropped what it had received.
    SocketMemory,
    /// Segments were lost and sent again on Assay's own hosts.
    Retransmissions,
    /// The hypervisor took the processors away.
    Stolen,
    /// A bare timer was already late before the run.
    Unquiet,
    /// The run came near what this machine was calibrated to offer.
    NearLimit,
    /// Samples could not be kept.
    SamplesDropped,
}

impl Reason {
    /// The word used in documents.
    pub fn name(self) -> &'static str {
        self.into()
    }

    pub fn blame(self) -> Blame {
        match self {
            Reason::LabFailed
            | Reason::SocketMemory
            | Reason::Retransmissions
            | Reason::Stolen
            | Reason::Unquiet => Blame::Lab,
            _ => Blame::Assay,
        }
    }

    /// Consequence, in a sentence.
    pub fn why(self) -> &'static str {
        match self {
            Reason::RoleFailed => "what it did not report is missing from the numbers",
            Reason::LabFailed => "the target was not measured under the conditions that were requested",
            Reason::Descriptors => "these requests never reached the target",
            Reason::Ports => "these requests never reached the target",
            Reason::Stalled => {
                "requests that were due meanwhile went out late and in a burst, and responses lay unread"
            }
            Reason::Starved => "responses lay unread and requests waited for a processor, not for the target",
            Reason::Saturated => "rates and times are what Assay can do, and not what the target can",
            Reason::Late => {
                "the target was not given the load of the schedule, and response times hold the delay"
            }
            Reason::UnsentLate => "the target was not given the load of the schedule",
            Reason::AcceptBacklog => {
                "the target waited for origins that were too slow, and so did its clients"
            }
            Reason::SocketMemory => "connections were slowed or cut by the kernel, not by the target",
            Reason::Retransmissions => "a lost segment costs 200 ms and more, which the target did not cause",
            Reason::Stolen => "everybody stood still meanwhile, the target too",
            Reason::Unquiet => "this machine cannot keep time to the precision that the numbers show",
            Reason::NearLimit => "the target may be capable of more load than it was given",
            Reason::SamplesDropped => "the record of single requests has holes",
        }
    }

    /// Advice, in a sentence.
    pub fn advice(self) -> &'static str {
        match self {
            Reason::RoleFailed => "read its own words in `roles/` of the run directory, and run again",
            Reason::LabFailed => "fix what the message names, and run again",
            Reason::Descriptors => {
                "raise `ulimit -n`, or give the workload fewer robots or a lower open_conn_lmt"
            }
            Reason::Ports => "give robots more source addresses, or widen net.ipv4.ip_local_port_range",
            Reason::Stalled => "keep other work off this machine, or try --realtime",
            Reason::Starved => {
                "give the role processors of its own (--robot-cpus, --origin-cpus), keep other work off them, or try \
                 --realtime"
            }
            Reason::Saturated => {
                "use more processors and --threads, a lower rate, or fewer robots; `--calibrate` says how much there is"
            }
            Reason::Late => "use a lower rate, more processors, or --realtime",
            Reason::UnsentLate => "use a lower rate, fewer robots, or more processors",
            Reason::AcceptBacklog => {
                "give origins more processors (--origin-cpus), or raise net.core.somaxconn"
            }
            Reason::SocketMemory => {
                "raise net.ipv4.tcp_mem, tcp_rmem and tcp_wmem, or have fewer connections"
            }
            Reason::Retransmissions => "look for a full queue or a firewall between the roles, and run again",
            Reason::Stolen => "use a machine whose processors are its own, or run when it is quiet",
            Reason::Unquiet => {
                "stop other work on this machine, or use another; --realtime helps against the former"
            }
            Reason::NearLimit => "use more processors, or a second machine",
            Reason::SamplesDropped => "leave --xact-log out, or write to a faster disk",
        }
    }
}

/// Figures that a doubt leaves unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Extent {
    /// None: what can have been done to each of them has bounds.
    #[default]
    Nothing,
    /// Times and rates; what was counted stands.
    Times,
    Everything,
}

/// A reason that was found in a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Doubt {
    /// Which.
    pub reason: Reason,
    /// Whose fault.
    pub blame: Blame,
    /// True: it can have moved times so much that the interval of a figure shows it, or it leaves figures unknown. False: it
    /// is worth knowing.
    pub serious: bool,
    /// Indices of the phases that it touches; empty: the run as a whole.
    pub phases: Vec<u16>,
    /// The role in question: `robots`, `origins`, `proxy`; empty: the machine.
    pub role: String,
    /// When the worst of it was, in milliseconds since the start of the run; none: all along.
    pub at_ms: Option<u64>,
    /// What was seen, with its figures.
    pub seen: String,
    /// Why it matters.
    pub why: String,
    /// What to do.
    pub advice: String,
}

impl Doubt {
    /// A serious doubt, with the texts of the list.
    pub fn serious(reason: Reason, seen: impl Into<String>) -> Self {
        Self { serious: true, ..Self::worth_knowing(reason, seen) }
    }

    /// Whether the doubt concerns the phase of this index.
    pub fn touches(&self, phase: usize) -> bool {
        self.phases.is_empty() || self.phases.iter().any(|touched| usize::from(*touched) == phase)
    }

    /// Figures of the phases concerned that are not known because of it.
    pub fn leaves_unknown(&self) -> Extent {
        match self.reason {
            _ if !self.serious => Extent::Nothing,
            Reason::RoleFailed => Extent::Everything,
            Reason::LabFailed | Reason::SocketMemory => Extent::Times,
            // Each of these has its bounds: in the delays of requests, or in how many were touched or lost.
            _ => Extent::Nothing,
        }
    }

    /// A doubt that is worth knowing, with the texts of the list.
    pub fn worth_knowing(reason: Reason, seen: impl Into<String>) -> Self {
        Self {
            reason,
            blame: reason.blame(),
            seen: seen.into(),
            why: reason.why().to_owned(),
            advice: reason.advice().to_owned(),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_documents_are_names_in_code() {
        for &reason in Reason::VARIANTS {
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.name());
        }
        assert!(Reason::VARIANTS.is_sorted());
    }

    #[test]
    fn a_doubt_says_what_was_seen_why_it_matters_and_what_to_do() {
        for &reason in Reason::VARIANTS {
            let doubt = Doubt::serious(reason, "seen");
            assert_eq!((doubt.seen.as_str(), doubt.why.as_str()), ("seen", reason.why()));
            assert!(!doubt.advice.is_empty());
            assert!(!reason.why().ends_with('.') && !reason.advice().ends_with('.'));
        }
    }
}
