//! Links of a run: as the command line says, or else the workload (`NetPipe`).

use std::time::Duration;

use anyhow::Error;
use assay_lab::units::LinkChoice;
use assay_lab::{LinkSettings, NetworkPlan, RunPlan, TargetChoice};
use assay_workload::model::{Link, Workload};

use super::run_args::RunArgs;
use crate::exit::Failure;

/// The network of a run. A workload's links are left out where the target runs already, which no link can be put before, and
/// in calibrations, which measure this machine.
pub fn bed(args: &RunArgs, target: &TargetChoice, workload: &Workload) -> Result<NetworkPlan, Failure> {
    let has_place = !matches!(target, TargetChoice::Running { .. }) && !args.calibrate;
    let said = workload.links.filter(|_| has_place).unwrap_or_default();
    Ok(NetworkPlan {
        robot_link: chosen(args.robot_link, said.robots)?,
        origin_link: chosen(args.origin_link, said.origins)?,
        congestion_control: args.congestion.clone(),
    })
}

/// Remark on links that the workload has and the run has not.
pub fn left_out(plan: &RunPlan) -> Option<String> {
    let is_running = matches!(plan.target, TargetChoice::Running { .. });
    (is_running && plan.workload.links.is_some()).then(|| {
        "the workload's links (NetPipe) are left out: a target that runs already cannot be put behind one"
            .into()
    })
}

/// The same for a part of a run, which is on a network of its own.
pub fn left_out_of_part(workload: &Workload) -> Option<String> {
    workload.links.map(|_| {
        "the workload's links (NetPipe) are left out: a part of a run uses the network that its machines are on".into()
    })
}

fn chosen(flag: Option<LinkChoice>, said: Option<Link>) -> Result<Option<LinkSettings>, Failure> {
    match (flag, said) {
        (Some(LinkChoice::Off), _) | (None, None) => Ok(None),
        (Some(LinkChoice::As(link)), _) => Ok(Some(link)),
        (None, Some(link)) => {
            let cannot = |error| {
                Failure::usage(Error::new(error).context("a NetPipe of the workload cannot be emulated"))
            };
            settings(link).checked().map(Some).map_err(cannot)
        }
    }
}

fn settings(link: Link) -> LinkSettings {
    LinkSettings {
        delay: Duration::from_secs_f64(link.delay_s),
        jitter: Duration::from_secs_f64(link.jitter_s.min(link.delay_s)),
        loss: link.loss,
        rate_bits_per_s: link.bits_per_s,
        queue_bytes: link.queue_bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: Link = Link {
        delay_s: 0.05,
        jitter_s: 0.01,
        loss: 0.001,
        bits_per_s: Some(56_320),
        queue_bytes: Some(75_000),
    };

    fn show(flag: Option<LinkChoice>, said: Option<Link>) -> Option<String> {
        chosen(flag, said).ok().flatten().map(|link| link.to_string())
    }

    #[test]
    fn a_link_is_as_the_workload_says_unless_the_command_line_says_otherwise() {
        let flag = LinkChoice::As("delay=1ms".parse().unwrap());
        let as_said = "delay=50ms,jitter=10ms,loss=0.1%,rate=56320bit/s,queue=75kB";
        assert_eq!(show(None, Some(SAID)).as_deref(), Some(as_said));
        assert_eq!(show(Some(flag), Some(SAID)).as_deref(), Some("delay=1ms"));
        assert_eq!(show(Some(LinkChoice::Off), Some(SAID)), None);
        assert_eq!(show(None, None), None);
    }

    #[test]
    fn what_a_workload_may_say_of_a_link_can_be_emulated() {
        let ((slowest, fastest), (short, long)) = (Link::RATES, Link::QUEUES);
        let most = Link { delay_s: Link::MOST_DELAY_S, jitter_s: Link::MOST_DELAY_S, loss: 0.999, ..SAID };
        let most = Link { bits_per_s: Some(fastest as u64), queue_bytes: Some(long as u64), ..most };
        let least = Link { bits_per_s: Some(slowest as u64), queue_bytes: Some(short as u64), ..SAID };
        for link in [most, least] {
            assert!(chosen(None, Some(link)).is_ok(), "{link:?}");
        }
    }
}
