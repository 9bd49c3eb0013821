//! The web switch as a target of cases: with one server, which is their origin. It stores nothing.

use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Instant;

use anyhow::{Context, anyhow};
use assay_conform::case::Case;
use assay_conform::document::TargetInfo;
use assay_conform::origin::Origin;
use assay_conform::run::{Http2, Outcome, Target, resolve_dependencies, run};
use assay_lab::harness::AddressReservation;
use assay_switch::Switch;

use super::targets::Progress;
use crate::exit::Failure;

/// The label of a target that is the switch; none: it is another.
pub fn label(typed: &str) -> Option<&str> {
    match typed.split_once('=') {
        Some((label, "switch")) if !label.is_empty() => Some(label),
        None if typed == "switch" => Some(typed),
        _ => None,
    }
}

/// All cases on the switch, those that may upset connections on an instance of their own.
pub async fn run_cases(
    label: String,
    host: Option<String>,
    cases: Vec<Rc<Case>>,
    progress: Rc<Progress>,
) -> Result<(TargetInfo, Vec<Outcome>), Failure> {
    let (isolated, together): (Vec<_>, Vec<_>) = cases.into_iter().partition(|case| case.isolated);
    let began = Instant::now();
    let (first, second) =
        tokio::join!(on_instance(&host, &together, &progress), on_instance(&host, &isolated, &progress));
    let mut outcomes = first?;
    outcomes.extend(second?);
    resolve_dependencies(&mut outcomes);
    let info = TargetInfo {
        label,
        software: format!("Assay switch {}", env!("CARGO_PKG_VERSION")),
        took_s: began.elapsed().as_secs_f64(),
        ..TargetInfo::default()
    };
    Ok((info, outcomes))
}

async fn on_instance(
    host: &Option<String>,
    cases: &[Rc<Case>],
    progress: &Progress,
) -> Result<Vec<Outcome>, Failure> {
    if cases.is_empty() {
        return Ok(Vec::new());
    }
    let reservation = AddressReservation::claim().map_err(Failure::failed)?;
    let listen = reservation.listener(0).map_err(Failure::failed)?;
    let origin = Origin::start(listen).with_context(|| format!("cannot listen on {listen}"));
    let origin = Rc::new(origin.map_err(Failure::failed)?);
    let mut switch = started(reservation.listener(1).map_err(Failure::failed)?, origin.address)?;
    let address = switch.addresses().first().copied();
    let address = address.ok_or_else(|| Failure::failed(anyhow!("the switch listens nowhere")))?;
    let host = host.clone().unwrap_or_else(|| origin.address.to_string());
    let target = Target {
        address,
        host,
        stores: false,
        is_forward: false,
        several: false,
        tls: None,
        http2: Http2::Beside,
    };
    let outcomes = run(cases, &target, &origin, |_, _| progress.advance()).await;
    switch.end();
    switch.wait().map_err(Failure::failed)?;
    Ok(outcomes)
}

fn started(listen: SocketAddr, server: SocketAddr) -> Result<Switch, Failure> {
    let text = format!(
        "listen = \"{listen}\"\npolicy = \"rr\"\nhttp2 = \"all\"\n[[server]]\nname = \"origin\"\naddress = \"{server}\"\n"
    );
    let config =
        assay_switch::read("the switch of the cases", &text).map_err(|m| Failure::failed(anyhow!("{m}")))?;
    Switch::start(config).map_err(Failure::failed)
}
