//! Waits until the machine is quiet, for a while at most. What quiet means is in [`assay_host::quiet`].

use std::time::Duration;

use assay_host::quiet::{ActivityMonitor, Decision, QuietWait};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::placement;

const SECOND: Duration = Duration::from_secs(1);

/// Waits for at most `longest`, or until it is to stop. `tell` gets what is waited for, once, if that is anything. Gives words
/// for the record where the machine did not become quiet.
pub async fn wait(
    longest: Duration,
    stop: &mut watch::Receiver<bool>,
    mut tell: impl FnMut(String),
) -> Option<String> {
    let mut monitor = ActivityMonitor::start(&placement::available());
    let mut quiet_wait = QuietWait::new(longest);
    let began = Instant::now();
    let mut told = false;
    loop {
        tokio::select! {
            () = tokio::time::sleep(SECOND) => {}
            stopped = stop.wait_for(|stop| *stop) => match stopped {
                Ok(_) => return None,
                // Nobody is left who could stop it.
                Err(_) => tokio::time::sleep(SECOND).await,
            },
        }
        let activity = monitor.sample();
        match quiet_wait.decide(began.elapsed(), &activity) {
            Decision::Start => return None,
            Decision::StartAnyway => {
                let seen = activity.describe();
                return Some(format!(
                    "the machine did not become quiet within {longest:?} (--wait-quiet): {seen}; the run starts anyway"
                ));
            }
            Decision::Wait if !told && !activity.is_quiet() => {
                told = true;
                tell(format!(
                    "waiting for at most {longest:?} until the machine is quiet: {}",
                    activity.describe()
                ));
            }
            Decision::Wait => {}
        }
    }
}
