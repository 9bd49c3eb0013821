//! An agent for tests.

use crate::machines::fleet::message::{AgentInfo, Free, PROTOCOL};

/// One of this name, the first instance, that does nothing.
pub fn agent(name: &str) -> AgentInfo {
    AgentInfo {
        protocol: PROTOCOL,
        version: "1.0".into(),
        name: name.parse().unwrap(),
        instance: 1,
        labels: Vec::new(),
        kernel: String::new(),
        cpus: 2,
        memory_bytes: 1,
        descriptors: 1,
        free: Free::default(),
        address: [127, 0, 0, 1].into(),
        may_load: Vec::new(),
        proxies: Vec::new(),
        accepts_descriptions: false,
        busy: None,
    }
}
