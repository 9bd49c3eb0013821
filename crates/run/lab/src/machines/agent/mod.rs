//! `assay agent`: takes orders from coordinators, and runs roles of one run at a time.
//!
//! | module | what it does |
//! |---|---|
//! | [`facts`] | what this machine is |
//! | [`responder`] | responds to discovery and to clock requests, on a thread of its own |
//! | [`adapt`] | makes a spec from elsewhere one of this machine, or refuses it |
//! | [`descriptions`] | how real proxies are driven here |
//! | [`agent_run`] | the run that it takes part in: roles, files, its machine's meters |
//! | [`outbox`] | what roles say, on its way to the stream of the run |

mod adapt;
mod agent_run;
mod descriptions;
mod facts;
mod outbox;
mod responder;

use std::collections::VecDeque;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::machines::fleet::message::{self, AgentInfo, Order, Response, What};
use crate::machines::fleet::name::Name;
use crate::machines::fleet::subject;
use assay_protocol::network::Network;
use async_nats::Client;
use futures_util::StreamExt;

use crate::machines::error::FleetError;
use crate::machines::login::Login;
use agent_run::AgentRun;
use responder::Responder;

/// The longest that an agent goes on without a word from its coordinator, whatever that wanted.
pub const MOST_WAIT: Duration = Duration::from_secs(3600);

/// Settings of an agent.
#[derive(Debug, Clone)]
pub struct AgentSettings {
    /// Server, and the agent's credentials there.
    pub login: Login,
    pub name: Name,
    /// Labels by which it can be selected.
    pub labels: Vec<Name>,
    /// Address at which other machines reach it; none: the address from which it reaches the server.
    pub address: Option<IpAddr>,
    /// Networks that its roles may load.
    pub may_load: Vec<Network>,
    /// Directories with descriptions of proxies, beside those that ship with Assay.
    pub proxy_dirs: Vec<PathBuf>,
    /// Whether a coordinator may send a description of its own, which holds commands.
    pub accepts_descriptions: bool,
    /// The directory that it writes in.
    pub dir: PathBuf,
    /// The program itself, whose roles it starts.
    pub exe: PathBuf,
    /// The version of the program.
    pub version: String,
}

/// Runs an agent until `stop` is done, or the server is given up. Everything that it started has ended then. `log` gets who
/// ordered what. Call it on a runtime of one thread: children end with the thread that started them.
pub async fn run(
    settings: AgentSettings,
    stop: impl Future<Output = ()>,
    log: impl Fn(&str),
) -> Result<(), FleetError> {
    let address = match settings.address {
        Some(address) => address,
        None => facts::address_towards(&settings.login.url)?,
    };
    std::fs::create_dir_all(&settings.dir).map_err(|e| {
        FleetError::plan(format!(
            "cannot make the agent's directory {}: {e}; name another with --dir",
            settings.dir.display()
        ))
    })?;
    let info = facts::info(&settings, address).await;
    let responder = Responder::open(settings.login.clone(), info.clone(), settings.dir.clone()).await?;
    let client = responder.client();
    let cannot = |e: &dyn std::fmt::Display| {
        FleetError::plan(format!("cannot take orders from {}: {e}", settings.login.url))
    };
    let mut orders = client.subscribe(subject::orders(&settings.name)).await.map_err(|e| cannot(&e))?;
    log(&format!("agent {} is at {address}, connected to {}", settings.name, settings.login.url));
    // It ends with the runtime.
    let mut agent =
        Agent { settings, info, responder, client, part: None, finished: None, done: VecDeque::new() };
    tokio::pin!(stop);
    let mut ticker = tokio::time::interval(Duration::from_millis(250));
    ticker.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = &mut stop => break,
            order = orders.next() => match order {
                Some(order) => {
                    let response = tokio::select! {
                        response = agent.handle(&order.payload, &log) => response,
                        // Some orders take a minute. What one has begun is ended below, with all else.
                        () = &mut stop => break,
                    };
                    agent.respond(order.reply, &response).await;
                }
                None => break,
            },
            () = async { match &mut agent.part { Some(part) => part.attend().await, None => std::future::pending().await } } => {}
            _ = ticker.tick() => agent.look_for_coordinator(&log).await,
        }
    }
    if let Some(part) = agent.part.take() {
        log(&format!("ends the roles of {}", part.run()));
        part.abandon().await;
    }
    Ok(())
}

/// Number of orders that an agent remembers, with the responses to them.
const MOST_DONE: usize = 64;

/// The longest that is said of who gives an order.
const MOST_LETTERS: usize = 100;

/// The order of somebody whose name is a part of one line, as the log has one for each order.
fn signed(order: Order) -> Order {
    let by = order.by.chars().take(MOST_LETTERS);
    let by =
        by.map(|letter| if letter.is_control() { char::REPLACEMENT_CHARACTER } else { letter }).collect();
    Order { by, ..order }
}

struct Agent {
    settings: AgentSettings,
    info: AgentInfo,
    responder: Responder,
    client: Client,
    part: Option<AgentRun>,
    /// The last run whose files were stored, and what they are called: a coordinator that did not hear it asks again.
    finished: Option<(Name, Vec<String>)>,
    /// The last orders that were carried out, and the responses: a coordinator that did not get one sends its order again.
    done: VecDeque<(Name, u64, Response)>,
}

impl Agent {
    async fn handle(&mut self, order: &[u8], log: &impl Fn(&str)) -> Response {
        let order: Order = match message::read(order) {
            Ok(order) => signed(order),
            Err(error) => {
                log(&format!("refused an order: {error}"));
                return Response::Refused(error.to_string());
            }
        };
        let is_it = |(run, number, _): &&(Name, u64, Response)| *run == order.run && *number == order.number;
        if let Some((.., response)) = self.done.iter().find(is_it) {
            return response.clone();
        }
        let response = self.carry_out(&order).await;
        if self.done.len() == MOST_DONE {
            self.done.pop_front();
        }
        self.done.push_back((order.run.clone(), order.number, response.clone()));
        let what = match &order.what {
            What::Begin { wait_ms, description, .. } => {
                let brought = if description.is_some() { ", with a description of its own" } else { "" };
                format!("take part, and wait {wait_ms} ms for a coordinator{brought}")
            }
            What::Start { spec, .. } => format!("start {}", spec.role()),
            What::Tell { role, command } => format!("tell role {role} {command:?}"),
            What::Measure { .. } => "measure its machine".to_owned(),
            What::End { role } => format!("end role {role}"),
            What::Finish => "finish".to_owned(),
        };
        // What is said every second is not news.
        if !matches!(&order.what, What::Tell { command: assay_protocol::message::Command::Clock { .. }, .. })
        {
            let refused = if let Response::Refused(why) = &response {
                format!(": refused: {why}")
            } else {
                String::new()
            };
            log(&format!("{} for run {}: {what}{refused}", order.by, order.run));
        }
        self.responder.set_busy(self.part.as_ref().map(AgentRun::busy));
        response
    }

    async fn carry_out(&mut self, order: &Order) -> Response {
        if order.version != self.settings.version {
            return Response::Refused(format!(
                "it is Assay {} and the coordinator is Assay {}; install the same version on both",
                self.settings.version, order.version
            ));
        }
        if let (None, What::Finish, Some((run, files))) = (&self.part, &order.what, &self.finished)
            && *run == order.run
        {
            return Response::Files(files.clone());
        }
        let part = match (&mut self.part, &order.what) {
            (None, What::Begin { .. }) => {
                return match AgentRun::begin(&self.settings, &self.client, order).await {
                    Ok(part) => {
                        self.responder.attach_coordinator(part.run());
                        let version = part.version();
                        self.part = Some(part);
                        version.map_or(Response::Done, Response::Version)
                    }
                    Err(error) => Response::Refused(error.to_string()),
                };
            }
            (Some(part), _) if *part.run() != order.run => {
                let busy = part.busy();
                return Response::Refused(format!("it takes part in the run {} of {}", busy.run, busy.by));
            }
            (None, _) => return Response::Refused(format!("it takes no part in the run {}", order.run)),
            (Some(part), _) => part,
        };
        let done = match &order.what {
            What::Begin { .. } => Ok(()),
            What::Start { role, spec, files } => {
                part.start(&self.settings, &self.info, *role, spec.as_ref().clone(), files)
            }
            What::Tell { role, command } => part.tell(*role, command.clone()).await,
            What::Measure { at_monotonic_ns } => {
                part.measure_from(*at_monotonic_ns);
                Ok(())
            }
            What::End { role } => {
                part.end(*role).await;
                Ok(())
            }
            What::Finish => match part.finish(&self.client).await {
                Ok(files) => {
                    self.part = None;
                    self.responder.detach_coordinator();
                    self.finished = Some((order.run.clone(), files.clone()));
                    return Response::Files(files);
                }
                Err(error) => Err(error),
            },
        };
        done.map_or_else(|error| Response::Refused(error.to_string()), |()| Response::Done)
    }

    async fn respond(&self, reply: Option<async_nats::Subject>, response: &Response) {
        let (Some(reply), Ok(response)) = (reply, serde_json::to_vec(response)) else { return };
        // A coordinator that gets no response sends the order again, or gives the agent up.
        let _ = self.client.publish(reply, response.into()).await;
        let _ = self.client.flush().await;
    }

    /// Ends everything once the coordinator has said nothing for too long.
    async fn look_for_coordinator(&mut self, log: &impl Fn(&str)) {
        let silent = self.responder.since_coordinator();
        if let Some(part) = self.part.take_if(|part| silent >= part.wait()) {
            log(&format!(
                "no coordinator of {} said anything for {:?}; its roles are ended",
                part.run(),
                part.wait()
            ));
            part.abandon().await;
            self.responder.detach_coordinator();
            self.responder.set_busy(None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_gives_an_order_cannot_add_lines_to_the_log() {
        let by = format!("mallory\n{}", "x".repeat(1_000_000));
        let (run, what) = ("r1".parse().unwrap(), What::Finish);
        let order = Order { protocol: 0, version: String::new(), run, by, number: 0, what };
        let by = signed(order).by;
        assert!(by.starts_with("mallory\u{fffd}x") && by.chars().count() == MOST_LETTERS, "{by}");
    }
}
