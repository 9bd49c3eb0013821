//! Addresses of robots and servers.

use assay_workload::model::RobotAddress;

use super::Builder;
use crate::diagnostic::{Code, Diagnostic};
use crate::source::Span;
use crate::value::address::AddrRange;
use crate::value::array::{MAX_ITEMS, Run};
use crate::value::{Record, Value};

impl Builder<'_> {
    /// The addresses of an agent as runs; none, with a warning, if it has none.
    pub(super) fn agent_runs(&mut self, record: &Record, span: Span) -> Option<Vec<Run>> {
        let kind = record.kind.name();
        if record.get("addresses").is_some_and(|slot| slot.value.is_broken()) {
            return None;
        }
        let Some((array, at)) = self.array(record, "addresses").filter(|(array, _)| array.count() > 0) else {
            let label = self.text(record, "kind").map_or(String::new(), |label| format!(" \"{label}\""));
            self.diagnostics.add(
                Diagnostic::warning(Code::NoAddresses, span, format!("the {kind}{label} has no addresses"))
                    .label("it is skipped")
                    .help("set its `addresses` before `use()`, which copies it"),
            );
            return None;
        };
        // Numbers of addresses are `u32` in workloads.
        let runs = array.runs().filter(|_| array.count() <= u64::from(u32::MAX));
        let Some(runs) = runs else {
            self.error(
                Code::TooMany,
                at,
                format!("this {kind} has too many addresses"),
                "these cannot be listed",
            );
            return None;
        };
        if runs
            .iter()
            .any(|run| matches!(&run.value, Value::Address(a) if a.interface.is_some() || a.subnet.is_some()))
        {
            self.warn_unsupported(
                "interface or subnet of an address",
                at,
                "no address is configured on the machine",
            );
        }
        Some(runs)
    }

    /// The addresses of robots, run-length coded.
    pub(super) fn robot_addresses(&mut self, record: &Record, span: Span) -> Option<Vec<RobotAddress>> {
        let runs = self.agent_runs(record, span)?;
        let at = record.get("addresses").map_or(span, |slot| slot.span);
        let mut out: Vec<RobotAddress> = Vec::new();
        let mut listed = 0_u64;
        let mut with_port = false;
        for run in &runs {
            let Value::Address(range) = &run.value else { continue };
            with_port |= range.ports.is_some();
            // A single address that repeats is one run; a range that repeats is not.
            let (rounds, times) = if range.count() == 1 { (1, run.times) } else { (run.times, 1) };
            listed = listed.saturating_add(range.count().saturating_mul(rounds));
            if listed > MAX_ITEMS {
                let label = format!("more than {MAX_ITEMS} different ones in a row");
                self.error(Code::TooMany, at, "these robots have too many addresses", label);
                return None;
            }
            for address in (0..rounds).flat_map(|_| range.iter()) {
                push_address(&mut out, &address, times as u32);
            }
        }
        if with_port {
            self.diagnostics.add(
                Diagnostic::error(Code::BadAddress, at, "the address of a robot has a port")
                    .label("expected addresses without ports: the system chooses one for each connection")
                    .help("`setAddrPort(addresses, -1)` takes the ports away"),
            );
        }
        Some(out)
    }
}

fn push_address(out: &mut Vec<RobotAddress>, address: &AddrRange, count: u32) {
    let host = address.host();
    match out.last_mut() {
        Some(last) if last.host == host => last.count = last.count.saturating_add(count),
        _ => out.push(RobotAddress { host, count }),
    }
}
