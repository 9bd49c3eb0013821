//! What the tests share: clusters from text, nodes, and a client of a few lines.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use assay_cluster::simulate::{Experiment, read};
use assay_load::node::ModelClock;
use assay_load::node::nodes::{NodeKind, Nodes, NodesSpec};

/// Two nodes, two files and a program.
pub const SMALL: &str = "policies = [\"rr\"]\nclients = [4]\nwarm-up = \"50ms\"\nmeasure = \"500ms\"\nwarm-memory = true\n\
    classes = [\"static\", \"dynamic\"]\n[[cluster]]\nnodes = 2\n\
    [[service]]\nname = \"file5k\"\nprocessor = \"1ms\"\nbytes = 5125\ndocuments = 20\n\
    [[service]]\nname = \"file100k\"\nprocessor = \"1ms\"\nbytes = 102500\ndocuments = 2\n\
    [[service]]\nname = \"cpu-light\"\nclass = \"dynamic\"\nprocessor = \"20ms\"\nbytes = 10\n\
    [[mix]]\nlabel = \"all\"\nweights = { file5k = 8, file100k = 1, cpu-light = 2 }\n";

pub fn cluster(text: &str) -> Experiment {
    read("test.toml", text, &|name| Err(format!("no {name} here").into()))
        .unwrap_or_else(|mistake| panic!("{mistake}"))
}

pub fn start(experiment: &Experiment, kind: NodeKind, clock: ModelClock) -> Nodes {
    let listen = "127.0.0.1:0".parse().expect("an address");
    let (cluster, mix) = (&experiment.clusters[0], &experiment.mixes[0]);
    Nodes::start(NodesSpec::new(experiment, cluster, mix, listen, kind, clock)).expect("nodes")
}

/// What a server sends in response, until it closes the connection.
pub fn exchange(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("a server");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    stream.write_all(request.as_bytes()).expect("it listens");
    let mut response = Vec::new();
    // A connection that is reset has said nothing more.
    let _ = stream.read_to_end(&mut response);
    String::from_utf8_lossy(&response).into_owned()
}

/// The response to a GET.
pub fn get(address: SocketAddr, path: &str) -> String {
    exchange(address, &format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"))
}

/// What follows the head of a response.
pub fn body_of(response: &str) -> &str {
    response.split_once("\r\n\r\n").map_or("", |(_, body)| body)
}
