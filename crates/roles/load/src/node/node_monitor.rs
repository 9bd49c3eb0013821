//! Utilisation of nodes that somebody else started, second by second, as they report it at `/assay/state`.
//!
//! A node says what it has used since it started, so whoever else requests its state takes nothing from what is read here, and a
//! second in which it does not respond in time shares the average of those up to its next response.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use assay_cluster::simulate::SAMPLE_EVERY_S;
use assay_measurement::histogram::Histogram;
use assay_net::connection::Resources;
use assay_net::upstream::UpstreamTimeouts;
use assay_record::cluster::{NodeTime, NodeUse, NodeUsed};
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::oneshot;
use tokio::task::{JoinSet, spawn_local};

use crate::node::NodeError;
use crate::node::clients::HttpClient;
use crate::node::model_clock::{ModelClock, ModelTimer};
use crate::node::nodes::NodesSample;

/// Limits of a request for a node's state, which takes microseconds.
const TIMEOUTS: UpstreamTimeouts =
    UpstreamTimeouts { connect: Duration::from_secs(1), response: Duration::from_secs(1) };

/// State of a node at a moment; none: no response, or none in time.
type NodeReading = Option<(NodeTime, u32)>;
/// States of all nodes at their moments.
type NodeReadings = Vec<(assay_cluster::dispatch::Moment, Vec<NodeReading>)>;

/// Nodes that are watched until this is dropped.
#[derive(Debug)]
pub struct NodeMonitor {
    readings: Arc<Mutex<NodeReadings>>,
    /// Dropped to end it.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl NodeMonitor {
    /// Watches these, if all of them say how busy they are; else the first that does not.
    pub fn start(nodes: Vec<SocketAddr>, clock: ModelClock) -> Result<Result<Self, SocketAddr>, NodeError> {
        let (stop, stopped) = oneshot::channel();
        let (ready, is_ready) = mpsc::channel();
        let readings = Arc::<Mutex<NodeReadings>>::default();
        let own = Arc::clone(&readings);
        let work =
            move || match Builder::new_current_thread().enable_all().build_local(LocalOptions::default()) {
                Err(cause) => {
                    // The caller waits for it.
                    let _ = ready.send(Err(NodeError::Start { component: "the watch over nodes", cause }));
                }
                Ok(runtime) => runtime.block_on(async {
                    tokio::select! {
                        () = watch(nodes, clock, &own, &ready) => {}
                        _ = stopped => {}
                    }
                }),
            };
        let thread = std::thread::Builder::new()
            .name("watch".into())
            .spawn(work)
            .map_err(NodeError::start("the watch over nodes"))?;
        let silent =
            is_ready.recv().map_err(|_| NodeError::Panicked { component: "the watch over nodes" })??;
        match silent {
            Some(address) => Ok(Err(address)),
            None => Ok(Ok(Self { readings, stop: Some(stop), thread: Some(thread) })),
        }
    }

    /// States of all nodes, second by second, so far.
    pub fn samples(&self) -> Vec<NodesSample> {
        samples_between(&self.readings.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for NodeMonitor {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            // A panic was told on standard error already.
            let _ = thread.join();
        }
    }
}

type MonitorReady = mpsc::Sender<Result<Option<SocketAddr>, NodeError>>;

/// Requests the state of all nodes once a second, for ever.
async fn watch(
    nodes: Vec<SocketAddr>,
    clock: ModelClock,
    readings: &Mutex<NodeReadings>,
    ready: &MonitorReady,
) {
    let timer = match ModelTimer::new(clock).map_err(NodeError::start("a timer")) {
        Ok(timer) => Rc::new(timer),
        Err(error) => return drop(ready.send(Err(error))),
    };
    let resources = Resources::new();
    resources.run_deadlines();
    let client = HttpClient::new(&resources, TIMEOUTS, true);
    let first = read_all(&nodes, &client).await;
    let silent = nodes.iter().zip(&first).find(|(_, reading)| reading.is_none());
    let silent = silent.map(|(address, _)| *address);
    let _ = ready.send(Ok(silent));
    if silent.is_some() {
        return;
    }
    let keep = |read: Vec<NodeReading>| {
        readings.lock().unwrap_or_else(PoisonError::into_inner).push((clock.now(), read));
    };
    keep(first);
    let ringing = Rc::clone(&timer);
    spawn_local(async move { drop(ringing.run().await) });
    let mut next = clock.now();
    loop {
        next = next.plus_secs(SAMPLE_EVERY_S);
        timer.until(next).await;
        keep(read_all(&nodes, &client).await);
    }
}

/// Requests the states of all nodes at the same time.
async fn read_all(nodes: &[SocketAddr], client: &HttpClient) -> Vec<NodeReading> {
    let mut requests = JoinSet::new();
    for (number, &node) in nodes.iter().enumerate() {
        let client = client.clone();
        requests.spawn_local(async move { (number, read(&client, node).await) });
    }
    let mut all = vec![None; nodes.len()];
    while let Some(Ok((number, reading))) = requests.join_next().await {
        all[number] = reading;
    }
    all
}

async fn read(client: &HttpClient, node: SocketAddr) -> NodeReading {
    let text = client.state(node, TIMEOUTS).await?;
    let NodeUsed { used, in_flight } = serde_json::from_slice(&text).ok()?;
    Some((used, in_flight))
}

/// Utilisation of all nodes between readings. A node that was silent for a while was as busy in each of these seconds
/// as it was on average; if it was silent to the end, or was started again, that is not known, and it counts as idle.
fn samples_between(readings: &NodeReadings) -> Vec<NodesSample> {
    let nodes = readings.first().map_or(0, |(_, first)| first.len());
    let moments = readings.iter().skip(1).map(|(at, _)| *at);
    let mut samples_between: Vec<NodesSample> = moments
        .map(|at| NodesSample { at, nodes: vec![NodeUse::default(); nodes], late_us: Histogram::new() })
        .collect();
    for node in 0..nodes {
        let mut last: Option<(usize, NodeTime)> = None;
        for (index, (_, all)) in readings.iter().enumerate() {
            let Some((used, in_flight)) = all[node] else { continue };
            if let Some((before, earlier)) = last
                && let Some(share) = used.since(&earlier, in_flight)
            {
                samples_between[before..index].iter_mut().for_each(|sample| sample.nodes[node] = share);
            }
            last = Some((index, used));
        }
    }
    samples_between
}

#[cfg(test)]
mod tests {
    use assay_cluster::dispatch::Moment;

    use super::*;

    fn reading(at_s: f64, processor_s: f64) -> NodeReading {
        Some((NodeTime { at_s, processor_s, ..NodeTime::default() }, 3))
    }

    fn processors(readings: Vec<NodeReading>) -> Vec<f64> {
        let at = |(second, reading)| (Moment::from_secs(second as f64), vec![reading]);
        let readings: NodeReadings = readings.into_iter().enumerate().map(at).collect();
        let rounded = |sample: NodesSample| (sample.nodes[0].processor * 1e6).round() / 1e6;
        samples_between(&readings).into_iter().map(rounded).collect()
    }

    #[test]
    fn each_second_has_what_was_used_in_it_by_the_nodes_own_clock() {
        let all = processors(vec![reading(7.0, 1.0), reading(8.0, 1.5), reading(10.0, 2.0)]);
        assert_eq!(all, [0.5, 0.25]);
    }

    #[test]
    fn seconds_without_a_response_share_the_average_and_those_at_the_end_are_idle() {
        let all = vec![reading(1.0, 0.0), None, None, reading(4.0, 1.5), None];
        assert_eq!(processors(all), [0.5, 0.5, 0.5, 0.0]);
    }

    #[test]
    fn a_node_that_was_started_again_has_nothing_in_that_second() {
        assert_eq!(processors(vec![reading(9.0, 8.0), reading(0.5, 0.1), reading(1.5, 0.9)]), [0.0, 0.8]);
    }
}
