//! The functions that deal addresses to the machines of a bench.

use std::rc::Rc;

use super::argument::{Argument, flatten};
use super::expression::too_many;
use super::{Evaluated, Interpreter, Reported};
use crate::ast::Call;
use crate::diagnostic::{Code, Diagnostic};
use crate::schema::{Base, RecordKind, Ty};
use crate::source::Span;
use crate::value::address::AddrRange;
use crate::value::array::{Item, MAX_ITEMS};
use crate::value::{Record, Value};

/// A bench and the scheme that deals its addresses.
struct Deal<'a> {
    scheme: &'a Record,
    bench: &'a Record,
    span: Span,
}

/// Addresses that a machine gets, and how many agents sit on each.
struct Need {
    machines: u64,
    addresses_per_machine: u64,
    agents_per_address: u32,
}

pub(super) fn robots(i: &mut Interpreter<'_>, call: &Call, arguments: &[Argument]) -> Evaluated<Value> {
    let deal = i.deal(call, arguments)?;
    let need = i.robot_need(&deal)?;
    if deal.scheme.kind == RecordKind::PolyMix3As {
        return i.masked(&deal, "client_side", 1, need.machines * need.addresses_per_machine);
    }
    i.spaced(&deal, "client_side", &need)
}

pub(super) fn servers(i: &mut Interpreter<'_>, call: &Call, arguments: &[Argument]) -> Evaluated<Value> {
    let deal = i.deal(call, arguments)?;
    match deal.scheme.kind {
        RecordKind::PolyMix3As | RecordKind::PolyMix4As => {
            let need = i.robot_need(&deal)?;
            let robots = need.machines * need.addresses_per_machine;
            let wanted = 500 + robots.div_ceil(10);
            let per_machine = wanted.div_ceil(need.machines.max(1));
            if deal.scheme.kind == RecordKind::PolyMix3As {
                return i.masked(&deal, "server_side", 129, per_machine * need.machines);
            }
            let need = Need { addresses_per_machine: per_machine, agents_per_address: 1, ..need };
            i.spaced(&deal, "server_side", &need)
        }
        RecordKind::SpreadAs => {
            let need = i.spread_need(&deal, "server_side")?;
            i.spaced(&deal, "server_side", &need)
        }
        _ => i.hosts(&deal, "server_side"),
    }
}

pub(super) fn proxies(i: &mut Interpreter<'_>, call: &Call, arguments: &[Argument]) -> Evaluated<Value> {
    let deal = i.deal(call, arguments)?;
    i.hosts(&deal, "proxy_side")
}

pub(super) fn client_hosts(i: &mut Interpreter<'_>, call: &Call, arguments: &[Argument]) -> Evaluated<Value> {
    let [bench] = arguments else { return Err(Reported) };
    let bench = i.object_argument(bench, &[RecordKind::Bench])?;
    let deal = Deal { scheme: &bench, bench: &bench, span: call.span };
    let machines = i.machines(&deal)?;
    i32::try_from(machines).map(Value::Int).or_else(|_| i.fail(too_many(call.span)))
}

const SCHEMES: [RecordKind; 5] = [
    RecordKind::PolyMix3As,
    RecordKind::PolyMix4As,
    RecordKind::WebAxe4As,
    RecordKind::SrvLb4As,
    RecordKind::SpreadAs,
];

impl Interpreter<'_> {
    fn deal<'a>(&mut self, call: &Call, arguments: &'a [Argument]) -> Evaluated<Deal<'a>> {
        let [scheme, bench] = arguments else { return Err(Reported) };
        self.object_argument(scheme, &SCHEMES)?;
        self.object_argument(bench, &[RecordKind::Bench])?;
        match (&scheme.value, &bench.value) {
            (Value::Record(scheme), Value::Record(bench)) => Ok(Deal { scheme, bench, span: call.span }),
            _ => Err(Reported),
        }
    }

    fn object_argument(&mut self, argument: &Argument, kinds: &[RecordKind]) -> Evaluated<Rc<Record>> {
        match &argument.value {
            Value::Record(record) if kinds.contains(&record.kind) => Ok(record.clone()),
            other => {
                let wanted: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
                let message = format!("expected {}, found {}", wanted.join(" or "), other.type_name());
                self.fail(
                    Diagnostic::error(Code::TypeMismatch, argument.span, message)
                        .label(format!("this is {}", other.type_name())),
                )
            }
        }
    }

    /// A field of the bench; `path` is a field, or a side and its field.
    fn bench_value(&mut self, deal: &Deal<'_>, side: Option<&str>, field: &str) -> Evaluated<Value> {
        let record = match side {
            None => Some(deal.bench),
            Some(side) => match deal.bench.get(side).map(|slot| &slot.value) {
                Some(Value::Record(record)) => Some(&**record),
                _ => None,
            },
        };
        match record.and_then(|record| record.get(field)).map(|slot| slot.value.clone()) {
            Some(Value::Broken) => Err(Reported),
            Some(value) => Ok(value),
            None => {
                let name = side.map_or(field.to_owned(), |side| format!("{side}.{field}"));
                self.fail(
                    Diagnostic::error(
                        Code::NoValue,
                        deal.span,
                        format!("the bench does not say its `{name}`"),
                    )
                    .label("it is needed here")
                    .help(format!("set `{name}` of the `Bench` before this call")),
                )
            }
        }
    }

    fn bench_rate(&mut self, deal: &Deal<'_>, side: Option<&str>, field: &str) -> Evaluated<f64> {
        match self.bench_value(deal, side, field)? {
            Value::Rate(rate) if rate > 0.0 => Ok(rate),
            other => self.fail(
                Diagnostic::error(
                    Code::OutOfRange,
                    deal.span,
                    format!("`{field}` of the bench must be positive"),
                )
                .label(format!("it is {other}")),
            ),
        }
    }

    /// `addresses` of a side, one by one.
    fn bench_addresses(&mut self, deal: &Deal<'_>, side: &str, field: &str) -> Evaluated<Vec<AddrRange>> {
        let value = self.bench_value(deal, Some(side), field)?;
        let Value::Array(array) = self.fit(value, Ty::one(Base::Address).array(), deal.span)? else {
            return Err(Reported);
        };
        let Some(all) = flatten(&array) else { return self.fail(too_many(deal.span)) };
        let address = |value| match value {
            Value::Address(address) => Some((*address).clone()),
            _ => None,
        };
        Ok(all.into_iter().filter_map(address).collect())
    }

    /// Machines that the peak rate takes.
    fn machines(&mut self, deal: &Deal<'_>) -> Evaluated<u64> {
        let peak = self.bench_rate(deal, None, "peak_req_rate")?;
        let load = self.bench_rate(deal, Some("client_side"), "max_host_load")?;
        Ok(ceiling(peak / load))
    }

    fn agents_per_address(&mut self, deal: &Deal<'_>) -> Evaluated<u32> {
        if deal.scheme.kind == RecordKind::PolyMix3As {
            return Ok(1);
        }
        match deal.scheme.get("agents_per_addr").map(|slot| &slot.value) {
            None => Ok(1),
            Some(Value::Int(n)) if *n > 0 => Ok(n.unsigned_abs()),
            Some(other) => {
                let label = format!("`agents_per_addr` is {other}; expected 1 or more");
                self.fail(
                    Diagnostic::error(Code::OutOfRange, deal.span, "no agent fits on an address")
                        .label(label),
                )
            }
        }
    }

    fn robot_need(&mut self, deal: &Deal<'_>) -> Evaluated<Need> {
        if deal.scheme.kind == RecordKind::SpreadAs {
            return self.spread_need(deal, "client_side");
        }
        let machines = self.machines(deal)?;
        let agents_per_address = self.agents_per_address(deal)?;
        let peak = self.bench_rate(deal, None, "peak_req_rate")?;
        let load = self.bench_rate(deal, Some("client_side"), "max_agent_load")?;
        let robots = ceiling(peak / load);
        let addresses_per_machine = robots.div_ceil(machines).div_ceil(u64::from(agents_per_address));
        self.limited(deal, Need { machines, addresses_per_machine, agents_per_address })
    }

    fn spread_need(&mut self, deal: &Deal<'_>, side: &str) -> Evaluated<Need> {
        let machines = self.bench_addresses(deal, side, "hosts")?.len().max(1) as u64;
        let agents_per_address = self.agents_per_address(deal)?;
        let peak = self.bench_rate(deal, None, "peak_req_rate")?;
        let load = self.bench_rate(deal, Some(side), "max_agent_load")?;
        let agents = ceiling(peak / load);
        let addresses_per_machine = agents.div_ceil(machines).div_ceil(u64::from(agents_per_address));
        self.limited(deal, Need { machines, addresses_per_machine, agents_per_address })
    }

    fn limited(&mut self, deal: &Deal<'_>, need: Need) -> Evaluated<Need> {
        if need.machines.saturating_mul(need.addresses_per_machine) > MAX_ITEMS {
            return self.fail(too_many(deal.span));
        }
        Ok(need)
    }

    /// Addresses from `addr_space`, a subnet for each machine.
    fn spaced(&mut self, deal: &Deal<'_>, side: &str, need: &Need) -> Evaluated<Value> {
        let space = self.bench_addresses(deal, side, "addr_space")?;
        let spread = deal.scheme.kind == RecordKind::SpreadAs;
        let pools =
            if spread { slices(&space, need.machines) } else { subnets(&space, need.addresses_per_machine) };
        let wanted = need.addresses_per_machine as usize;
        let fitting: Vec<&Vec<AddrRange>> = pools.iter().filter(|pool| pool.len() >= wanted).collect();
        if (fitting.len() as u64) < need.machines {
            let message = format!(
                "`{side}.addr_space` is too small: {} machines need {wanted} addresses each",
                need.machines
            );
            return self.fail(
                Diagnostic::error(Code::TooMany, deal.span, message)
                    .label(format!("it has room for {} machines", fitting.len())),
            );
        }
        let mut items = Vec::new();
        for pool in fitting.into_iter().take(need.machines as usize) {
            for address in pool.iter().take(wanted) {
                let value = Value::Address(Rc::new(without_port_for(side, address)));
                items.push(Item { times: need.agents_per_address, ..Item::plain(value, deal.span) });
            }
        }
        Ok(Value::array(items))
    }

    /// Addresses made of a mask `N.M.0.0`, from a third octet on.
    fn masked(&mut self, deal: &Deal<'_>, side: &str, third: u64, count: u64) -> Evaluated<Value> {
        const PER_OCTET: u64 = 250;
        let mask = match self.bench_value(deal, Some(side), "addr_mask")? {
            Value::Address(mask) => mask,
            _ => return Err(Reported),
        };
        let Some([a, b, ..]) = mask.octets().filter(|_| third + count.div_ceil(PER_OCTET) <= 256) else {
            return self.fail(
                Diagnostic::error(
                    Code::BadAddress,
                    deal.span,
                    format!("{count} addresses do not fit into {mask}"),
                )
                .label("expected an IPv4 address with room in its third octet"),
            );
        };
        let address = |n: u64| {
            let text = format!("{a}.{b}.{}.{}", third + n / PER_OCTET, 1 + n % PER_OCTET);
            let parsed = AddrRange::parse(&text).ok()?;
            let address = AddrRange { interface: mask.interface.clone(), ..parsed.with_port(mask.port()) };
            Some(Value::Address(Rc::new(address)))
        };
        Ok(Value::list((0..count).filter_map(address), deal.span))
    }

    /// The machines of a side themselves.
    fn hosts(&mut self, deal: &Deal<'_>, side: &str) -> Evaluated<Value> {
        let value = self.bench_value(deal, Some(side), "hosts")?;
        self.fit(value, Ty::one(Base::Address).array(), deal.span)
    }
}

/// The whole number not below x, forgiving a rounding error.
fn ceiling(x: f64) -> u64 {
    (x - 1e-9).ceil().max(1.0) as u64
}

/// Robots have no port, whatever the address space says.
fn without_port_for(side: &str, address: &AddrRange) -> AddrRange {
    if side == "client_side" { address.with_port(None) } else { address.clone() }
}

/// The address space in equal slices.
fn slices(space: &[AddrRange], machines: u64) -> Vec<Vec<AddrRange>> {
    let each = (space.len() as u64 / machines.max(1)).max(1) as usize;
    space.chunks(each).map(<[AddrRange]>::to_vec).collect()
}

/// The address space by subnet: the one that addresses name, or the smallest that holds `wanted`.
fn subnets(space: &[AddrRange], wanted: u64) -> Vec<Vec<AddrRange>> {
    let smallest = 32 - (wanted + 2).next_power_of_two().trailing_zeros().min(31);
    let mut pools: Vec<(u32, Vec<AddrRange>)> = Vec::new();
    for address in space {
        let Some(octets) = address.octets() else { continue };
        let bits = address.subnet.map_or(smallest, u32::from).clamp(1, 32);
        let network = u32::from_be_bytes(octets) >> (32 - bits);
        match pools.last_mut() {
            Some((last, pool)) if *last == network => pool.push(address.clone()),
            _ => pools.push((network, vec![address.clone()])),
        }
    }
    pools.into_iter().map(|(_, pool)| pool).collect()
}
