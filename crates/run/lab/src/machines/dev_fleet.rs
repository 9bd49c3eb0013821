//! A server and a few agents on one host, for a first look and for tests.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::address::LoopbackNet;
use crate::cleanup;
use crate::process::{Launch, Process, find_program, last_lines};
use rustix::process::Signal;

use crate::machines::error::FleetError;

/// The program of the server.
const SERVER: &str = "nats-server";
/// Time that the server and agents may take to appear, and to end.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(20);
/// Labels of agents, in turn; from the fourth on, they are for robots.
const LABELS: [&str; 3] = ["robots", "proxy", "origins"];

#[derive(Debug, Clone)]
pub struct DevFleetSettings {
    pub agents: u8,
    /// The port of the server; 0: the system chooses.
    pub port: u16,
    /// The program itself, which agents are started of.
    pub exe: PathBuf,
}

/// A server and agents that run. Dropped, they are killed.
#[derive(Debug)]
pub struct DevFleet {
    /// URL of the server.
    pub url: String,
    // Agents end before their server, and all before their files go.
    agents: Vec<(String, Process)>,
    server: Process,
    net: LoopbackNet,
    dir: tempfile::TempDir,
}

impl DevFleet {
    /// Starts them, and waits until all agents are connected. Call it on a thread that outlives them.
    pub async fn start(settings: &DevFleetSettings) -> Result<Self, FleetError> {
        let program = find_program(SERVER).ok_or_else(|| {
            FleetError::plan(format!("`{SERVER}` was not found; install it: apt-get install nats-server"))
        })?;
        let net = LoopbackNet::claim().map_err(FleetError::plan)?;
        let cannot =
            |e: std::io::Error| FleetError::plan(format!("cannot make a directory for the server: {e}"));
        let dir = cleanup::temporary_dir("fleet").map_err(cannot)?;
        let mut server = start_server(&program, settings.port, dir.path())?;
        let url = wait_for_server(&mut server, settings.port, dir.path()).await?;
        let mut up = Self { url, agents: Vec::new(), server, net, dir };
        for number in 0..settings.agents {
            let name = format!("m{}", number + 1);
            let agent = up.start_agent(settings, number, &name)?;
            up.agents.push((name, agent));
        }
        up.wait_for_agents().await?;
        Ok(up)
    }

    fn start_agent(
        &self,
        settings: &DevFleetSettings,
        number: u8,
        name: &str,
    ) -> Result<Process, FleetError> {
        let address = self.net.cache(number).map_err(FleetError::plan)?.ip();
        let label = LABELS.get(usize::from(number)).copied().unwrap_or(LABELS[0]);
        let mut arguments: Vec<String> =
            ["agent", "--nats", &self.url, "--name", name].map(str::to_owned).into();
        arguments.extend(["--address".to_owned(), address.to_string()]);
        arguments.extend(["--dir".to_owned(), self.dir.path().join(name).display().to_string()]);
        // With fewer than three, each is for everything.
        let labels = if settings.agents < 3 { LABELS.to_vec() } else { vec![label] };
        arguments.extend(labels.into_iter().flat_map(|label| ["--label".to_owned(), label.to_owned()]));
        let output = self.dir.path().join(format!("{name}.log"));
        launch(settings.exe.clone(), arguments, self.dir.path(), &output)
    }

    /// Each agent says so in its log once it takes orders.
    async fn wait_for_agents(&mut self) -> Result<(), FleetError> {
        let deadline = tokio::time::Instant::now() + TIMEOUT;
        for (name, agent) in &mut self.agents {
            let log = self.dir.path().join(format!("{name}.log"));
            while !assay_base::files::text(&log, assay_base::files::DOCUMENT_MAX)
                .unwrap_or_default()
                .contains("connected to")
            {
                if agent.ended().is_some() || tokio::time::Instant::now() >= deadline {
                    let said = last_lines(&[&log]);
                    return Err(FleetError::failed(format!("agent {name} did not start; it said:\n{said}")));
                }
                tokio::time::sleep(PAUSE).await;
            }
        }
        Ok(())
    }

    /// Last output of the server if it ended by itself: nothing goes on without it.
    pub fn server_ended(&mut self) -> Option<String> {
        self.server.ended()?;
        Some(format!("{SERVER} ended by itself; it said:\n{}", self.server.last_lines()))
    }

    /// Last output of an agent that ended by itself. The others go on; it is told once.
    pub fn agent_ended(&mut self) -> Option<String> {
        let place = self.agents.iter_mut().position(|(_, agent)| agent.ended().is_some())?;
        let (name, agent) = self.agents.remove(place);
        Some(format!("agent {name} ended by itself; it said:\n{}", agent.last_lines()))
    }

    /// Ends agents, then the server.
    pub async fn stop(mut self) {
        for (_, agent) in &mut self.agents {
            agent.stop(Signal::TERM, TIMEOUT).await;
        }
        self.server.stop(Signal::TERM, TIMEOUT).await;
    }
}

fn launch(
    program: PathBuf,
    arguments: Vec<String>,
    directory: &Path,
    output: &Path,
) -> Result<Process, FleetError> {
    let name = program.display().to_string();
    let launch = Launch {
        program: program.into(),
        arguments: arguments.into_iter().map(Into::into).collect(),
        environment: BTreeMap::new(),
        directory,
        cpus: &[],
        piped: false,
        output,
        group: None,
        procs_files: &[],
        namespace: None,
        inherit: Vec::new(),
    };
    Process::start(launch).map_err(|e| FleetError::failed(format!("cannot start {name}: {e}")))
}

fn start_server(program: &Path, port: u16, dir: &Path) -> Result<Process, FleetError> {
    let port = if port == 0 { "-1".to_owned() } else { port.to_string() };
    let text = |path: PathBuf| path.display().to_string();
    let arguments =
        ["-a", "127.0.0.1", "-p", &port, "-js", "-sd", &text(dir.join("jetstream"))].map(str::to_owned);
    let mut arguments = arguments.to_vec();
    arguments.extend(["--ports_file_dir".to_owned(), text(dir.to_owned())]);
    launch(program.to_owned(), arguments, dir, &dir.join("nats-server.log"))
}

/// Waits for the file in which the server writes where it listens.
async fn wait_for_server(server: &mut Process, port: u16, dir: &Path) -> Result<String, FleetError> {
    let deadline = tokio::time::Instant::now() + TIMEOUT;
    loop {
        if let Some(url) = listening(dir) {
            return Ok(url);
        }
        if server.ended().is_some() || tokio::time::Instant::now() >= deadline {
            return Err(FleetError::plan(format!(
                "{SERVER} did not start on 127.0.0.1, port {port}; name another port with --port. It said:\n{}",
                server.last_lines()
            )));
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// The URL in a file of ports.
fn listening(dir: &Path) -> Option<String> {
    let entries = std::fs::read_dir(dir).ok()?.flatten().map(|entry| entry.path());
    let file =
        entries.into_iter().find(|path| path.extension().is_some_and(|extension| extension == "ports"))?;
    let ports: serde_json::Value =
        serde_json::from_slice(&assay_base::files::bytes(&file, assay_base::files::SETTINGS_MAX).ok()?)
            .ok()?;
    Some(ports.get("nats")?.get(0)?.as_str()?.to_owned())
}
