//! The work that each node needs for each service, measured. One client alone, then as many as bring no more.

use std::fmt::Write;
use std::net::SocketAddr;

use anyhow::{Context, anyhow};
use assay_cluster::simulate::Experiment;
use assay_load::node::calibrate::{
    CalibrationSpec, CalibrationStep, ServiceDemand, calibrate as needs_of, step,
};
use serde::Serialize;

use super::{ClusterArgs, start};
use crate::exit::{Exit, Failure};
use crate::{interrupt, output};

/// Version of the document.
const SCHEMA: &str = "assay-calibration/1";
/// Clients that request the whole mix, as in figure 7 of Jones's study (2002), unless others are said.
const CLIENTS: u32 = 8;
/// A step is no longer than this, unless it is said.
const STEP_S: f64 = 10.0;

#[derive(Debug, Serialize)]
struct CalibrationDocument {
    schema: &'static str,
    processors: u32,
    mix: String,
    clients: u32,
    nodes: Vec<NodeDocument>,
}

#[derive(Debug, Serialize)]
struct NodeDocument {
    address: SocketAddr,
    services: Vec<ServiceDocument>,
    /// Responses a second of the whole mix, by repetition.
    mix_per_s: Vec<f64>,
    failed: u64,
}

#[derive(Debug, Serialize)]
struct ServiceDocument {
    name: String,
    alone_us: f64,
    most_per_s: f64,
    processor_us: f64,
    shared_speed: f64,
    steps: Vec<StepDocument>,
}

#[derive(Debug, Serialize)]
struct StepDocument {
    clients: u32,
    per_s: f64,
    mean_us: f64,
    failed: u64,
}

/// Calibrates all nodes, one after the other.
pub fn calibrate(args: &ClusterArgs, experiment: &Experiment) -> Result<Exit, Failure> {
    interrupt::ends_with("interrupted; nothing is kept of the calibration\n")
        .context("cannot watch for Ctrl-C")
        .map_err(Failure::failed)?;
    let own = if args.nodes.is_empty() { Some(start(args, experiment)?) } else { None };
    let addresses = own.as_ref().map_or(args.nodes.clone(), |nodes| nodes.addresses().to_vec());
    let mix = &experiment.mixes[0];
    let processors = experiment.clusters[0].groups.first().map_or(1, |group| group.node.processors);
    let clients =
        args.clients.as_ref().and_then(|client_counts| client_counts.0.first().copied()).unwrap_or(CLIENTS);
    let mut document = CalibrationDocument {
        schema: SCHEMA,
        processors,
        mix: mix.label.clone(),
        clients,
        nodes: Vec::new(),
    };
    for address in addresses {
        let spec = CalibrationSpec {
            address,
            warm_up_s: args.warm_up.map_or(1.0, |time| time.as_secs_f64()),
            measure_s: args.measure.map_or(STEP_S, |time| time.as_secs_f64()),
            seed: experiment.seed,
            scale: args.slower,
        };
        document.nodes.push(node(&spec, experiment, processors, clients)?);
    }
    let text = match args.results.json {
        true => output::json(&document)?,
        false => text(&document),
    };
    output::result(&text, args.results.output.as_deref())?;
    Ok(Exit::Fine)
}

fn node(
    spec: &CalibrationSpec,
    experiment: &Experiment,
    processors: u32,
    clients: u32,
) -> Result<NodeDocument, Failure> {
    let mix = &experiment.mixes[0];
    let mut services = Vec::new();
    let requested = experiment.services.iter().zip(&mix.weights).filter(|(_, weight)| **weight > 0.0);
    for (service, _) in requested {
        output::say(&format!("{}: {}", spec.address, service.name));
        let needs = needs_of(spec, service).map_err(Failure::failed)?;
        if needs.alone_us() <= 0.0 {
            let seen = anyhow!("no response of {} was complete within {} s", service.name, spec.measure_s);
            return Err(Failure::failed(seen).hint("give it longer: --measure 10s"));
        }
        services.push(service_document(&service.name, &needs, processors));
    }
    output::say(&format!("{}: {}", spec.address, mix.label));
    let (mut mix_per_s, mut failed) = (Vec::new(), 0);
    for repetition in 0..experiment.repetitions {
        let spec = CalibrationSpec { seed: spec.seed.wrapping_add(u64::from(repetition)), ..*spec };
        let CalibrationStep { per_s, failed: lost, .. } =
            step(&spec, &experiment.services, &mix.weights, clients).map_err(Failure::failed)?;
        mix_per_s.push(per_s);
        failed += lost;
    }
    Ok(NodeDocument { address: spec.address, services, mix_per_s, failed })
}

fn service_document(name: &str, needs: &ServiceDemand, processors: u32) -> ServiceDocument {
    let step = |step: &CalibrationStep| StepDocument {
        clients: step.clients,
        per_s: step.per_s,
        mean_us: step.mean_us,
        failed: step.failed,
    };
    ServiceDocument {
        name: name.to_owned(),
        alone_us: needs.alone_us(),
        most_per_s: needs.most_per_s(),
        processor_us: needs.processor_us(processors),
        shared_speed: needs.shared_speed(processors),
        steps: needs.steps.iter().map(step).collect(),
    }
}

/// Tables for people, and what to put into a cluster file.
fn text(document: &CalibrationDocument) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "alone: what one client sees; saturated: processor time when more clients bring no more, on {} processors",
        document.processors
    );
    for (number, node) in document.nodes.iter().enumerate() {
        let _ = writeln!(text, "\nnode {number}, {}", node.address);
        let _ = writeln!(
            text,
            "{:<14} {:>9} {:>10} {:>13} {:>8} {:>13}",
            "service", "alone ms", "most /s", "saturated ms", "clients", "speed when all"
        );
        for service in &node.services {
            let _ = writeln!(
                text,
                "{:<14} {:>9.2} {:>10.1} {:>13.2} {:>8} {:>13.2}",
                service.name,
                service.alone_us / 1e3,
                service.most_per_s,
                service.processor_us / 1e3,
                service.steps.last().map_or(0, |step| step.clients),
                service.shared_speed
            );
        }
        let mean = node.mix_per_s.iter().sum::<f64>() / node.mix_per_s.len().max(1) as f64;
        let freedom = (node.mix_per_s.len() as f64 - 1.0).max(1.0);
        let squares = node.mix_per_s.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>();
        let _ = writeln!(
            text,
            "{} with {} clients: {mean:.1} responses/s, deviation {:.1} over {} runs{}",
            document.mix,
            document.clients,
            (squares / freedom).sqrt(),
            node.mix_per_s.len(),
            if node.failed > 0 { format!(", {} failed", node.failed) } else { String::new() }
        );
    }
    if let Some(node) = document.nodes.first() {
        text.push_str("\nfor a cluster file, from the first node alone with one client:\n");
        for service in &node.services {
            let _ = writeln!(text, "  {:<14} processor = \"{:.2}ms\"", service.name, service.alone_us / 1e3);
        }
    }
    text
}
