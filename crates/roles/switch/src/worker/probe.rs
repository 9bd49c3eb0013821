//! Probes for the state of servers: when a policy wants them, and at an interval if the settings say so.
//!
//! The state is in a field of the response ([`crate::orca`]); the rest of the response does not matter.

use std::iter;
use std::rc::Rc;
use std::time::Duration;

use assay_http::head::ResponseHead;

use super::context::{WorkerContext, moment};
use super::group::Group;
use super::runtime::spawn;
use super::server::Server;
use crate::orca;
use assay_net::buffers::write_all;

/// A state that arrives later is of no use.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);

/// Probes, in the background, the servers that the policy wants to know of.
pub fn probe_wanted(shared: &Rc<WorkerContext>, group: &Rc<Group>) {
    if !group.wants_probes {
        return;
    }
    let mut wanted = Vec::new();
    group.policy().probes(moment(), &mut wanted);
    for server in wanted {
        if let Some(server) = group.server(server) {
            spawn(probe(Rc::clone(shared), Rc::clone(group), Rc::clone(server)));
        }
    }
}

/// Probes all servers, for all policies that use load reports.
pub fn probe_all(shared: &Rc<WorkerContext>) {
    for group in shared.setup().groups.iter().filter(|group| group.wants_reports) {
        for server in group.servers().filter(|server| server.weight.get().is_some()) {
            spawn(probe(Rc::clone(shared), Rc::clone(group), Rc::clone(server)));
        }
    }
}

async fn probe(shared: Rc<WorkerContext>, group: Rc<Group>, server: Rc<Server>) {
    let setup = shared.setup();
    let deadline = shared.resources.deadlines.register();
    deadline.set(PROBE_TIMEOUT);
    let mut upstream = match server.take_idle() {
        Some(upstream) => upstream,
        None => match server.connect(&shared.resources).await {
            Ok(upstream) => upstream,
            Err(_) => return,
        },
    };
    let request = format!(
        "GET {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: assay-switch\r\n\r\n",
        setup.config.state.path, server.address
    );
    if write_all(&mut upstream.stream, &deadline, None, iter::once(request.as_bytes())).await.is_err() {
        return;
    }
    loop {
        if let Ok(Some((head, length))) = ResponseHead::parse(upstream.input.unread()) {
            let state = head.header(orca::FIELD).and_then(|value| orca::read(value, server.in_flight.get()));
            if let Some(state) = state {
                group.policy().reported(server.id, &state, moment());
            }
            // Only a complete response leaves the connection usable.
            let body = head.facts.content_length.unwrap_or(u64::MAX);
            if head.persists("GET") && (upstream.input.unread().len() - length) as u64 == body {
                server.put_back(upstream.stream, moment().nanos());
            }
            return;
        }
        match shared.resources.memory.fill(&mut upstream.stream, &deadline, &mut upstream.input).await {
            Ok(1..) => {}
            Ok(0) | Err(_) => return,
        }
    }
}
