//! Functions that deal the addresses of a bench to its machines, by the address schemes of Web Polygraph's workloads.

use std::rc::Rc;

use super::expression::too_many_items;
use super::functions::Argument;
use super::{ErrorReported, EvalResult, Interpreter};
use crate::ast::Call;
use crate::diagnostic::{Code, Diagnostic};
use crate::schema::{Base, RecordKind, Ty};
use crate::source::Span;
use crate::value::address::AddrRange;
use crate::value::array::{Item, MAX_ITEMS};
use crate::value::{Record, Value};

/// The arguments of a call with a scheme and a bench.
struct SchemeCall<'a> {
    scheme: &'a Record,
    bench: &'a Record,
    span: Span,
}

/// Machines, addresses on each and agents at each address that a rate needs.
struct AddressDemand {
    machines: u64,
    addresses_per_machine: u64,
    agents_per_address: u32,
}

pub(super) fn robots(i: &mut Interpreter<'_>, call: &Call, arguments: &[Argument]) -> EvalResult<Value> {
    let scheme_call = i.scheme_call(call, arguments)?;
    let demand = i.robot_demand(&scheme_call)?;
    if scheme_call.scheme.kind == RecordKind::PolyMix3As {
        return i.addresses_from_mask(
            &scheme_call,
            "client_side",
            1,
            demand.machines * demand.addresses_per_machine,
        );
    }
    i.addresses_from_space(&scheme_call, "client_side", &demand)
}

pub(super) fn servers(i: &mut Interpreter<'_>, call: &Call, arguments: &[Argument]) -> EvalResult<Value> {
    let scheme_call = i.scheme_call(call, arguments)?;
    match scheme_call.scheme.kind {
        RecordKind::PolyMix3As | RecordKind::PolyMix4As => {
            let demand = i.robot_demand(&scheme_call)?;
            let robots = demand.machines * demand.addresses_per_machine;
            let wanted = 500 + robots.div_ceil(10);
            let per_machine = wanted.div_ceil(demand.machines.max(1));
            if scheme_call.scheme.kind == RecordKind::PolyMix3As {
                return i.addresses_from_mask(
                    &scheme_call,
                    "server_side",
                    129,
                    per_machine * demand.machines,
                );
            }
            let demand =
                AddressDemand { addresses_per_machine: per_machine, agents_per_address: 1, ..demand };
            i.addresses_from_space(&scheme_call, "server_side", &demand)
        }
        RecordKind::SpreadAs => {
            let demand = i.spread_demand(&scheme_call, "server_side")?;
            i.addresses_from_space(&scheme_call, "server_side", &demand)
        }
        _ => i.side_hosts(&scheme_call, "server_side"),
    }
}

pub(super) fn proxies(i: &mut Interpreter<'_>, call: &Call, arguments: &[Argument]) -> EvalResult<Value> {
    let scheme_call = i.scheme_call(call, arguments)?;
    i.side_hosts(&scheme_call, "proxy_side")
}

pub(super) fn client_hosts(
    i: &mut Interpreter<'_>,
    call: &Call,
    arguments: &[Argument],
) -> EvalResult<Value> {
    let [bench] = arguments else { return Err(ErrorReported) };
    let bench = i.object_argument(bench, &[RecordKind::Bench])?;
    let scheme_call = SchemeCall { scheme: &bench, bench: &bench, span: call.span };
    let machines = i.machines(&scheme_call)?;
    i32::try_from(machines).map(Value::Int).or_else(|_| i.fail(too_many_items(call.span)))
}

const SCHEMES: [RecordKind; 5] = [
    RecordKind::PolyMix3As,
    RecordKind::PolyMix4As,
    RecordKind::WebAxe4As,
    RecordKind::SrvLb4As,
    RecordKind::SpreadAs,
];

impl Interpreter<'_> {
    fn scheme_call<'a>(&mut self, call: &Call, arguments: &'a [Argument]) -> EvalResult<SchemeCall<'a>> {
        let [scheme, bench] = arguments else { return Err(ErrorReported) };
        self.object_argument(scheme, &SCHEMES)?;
        self.object_argument(bench, &[RecordKind::Bench])?;
        match (&scheme.value, &bench.value) {
            (Value::Record(scheme), Value::Record(bench)) => {
                Ok(SchemeCall { scheme, bench, span: call.span })
            }
            _ => Err(ErrorReported),
        }
    }

    fn object_argument(&mut self, argument: &Argument, kinds: &[RecordKind]) -> EvalResult<Rc<Record>> {
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

    /// A field of the bench, or of one of its sides.
    fn bench_value(
        &mut self,
        scheme_call: &SchemeCall<'_>,
        side: Option<&str>,
        field: &str,
    ) -> EvalResult<Value> {
        let record = match side {
            None => Some(scheme_call.bench),
            Some(side) => match scheme_call.bench.get(side).map(|slot| &slot.value) {
                Some(Value::Record(record)) => Some(&**record),
                _ => None,
            },
        };
        match record.and_then(|record| record.get(field)).map(|slot| slot.value.clone()) {
            Some(Value::Broken) => Err(ErrorReported),
            Some(value) => Ok(value),
            None => {
                let name = side.map_or(field.to_owned(), |side| format!("{side}.{field}"));
                self.fail(
                    Diagnostic::error(
                        Code::NoValue,
                        scheme_call.span,
                        format!("the bench does not say its `{name}`"),
                    )
                    .label("it is needed here")
                    .help(format!("set `{name}` of the `Bench` before this call")),
                )
            }
        }
    }

    fn bench_rate(
        &mut self,
        scheme_call: &SchemeCall<'_>,
        side: Option<&str>,
        field: &str,
    ) -> EvalResult<f64> {
        match self.bench_value(scheme_call, side, field)? {
            Value::Rate(rate) if rate > 0.0 => Ok(rate),
            other => self.fail(
                Diagnostic::error(
                    Code::OutOfRange,
                    scheme_call.span,
                    format!("`{field}` of the bench must be positive"),
                )
                .label(format!("it is {other}")),
            ),
        }
    }

    /// Addresses in a field of a side, one by one.
    fn bench_addresses(
        &mut self,
        scheme_call: &SchemeCall<'_>,
        side: &str,
        field: &str,
    ) -> EvalResult<Vec<AddrRange>> {
        let value = self.bench_value(scheme_call, Some(side), field)?;
        let Value::Array(array) = self.fit(value, Ty::one(Base::Address).array(), scheme_call.span)? else {
            return Err(ErrorReported);
        };
        let Some(all) = array.flatten() else { return self.fail(too_many_items(scheme_call.span)) };
        let address = |value| match value {
            Value::Address(address) => Some((*address).clone()),
            _ => None,
        };
        Ok(all.into_iter().filter_map(address).collect())
    }

    /// Number of client machines that the peak rate needs.
    fn machines(&mut self, scheme_call: &SchemeCall<'_>) -> EvalResult<u64> {
        let peak = self.bench_rate(scheme_call, None, "peak_req_rate")?;
        let load = self.bench_rate(scheme_call, Some("client_side"), "max_host_load")?;
        Ok(ceiling(peak / load))
    }

    fn agents_per_address(&mut self, scheme_call: &SchemeCall<'_>) -> EvalResult<u32> {
        if scheme_call.scheme.kind == RecordKind::PolyMix3As {
            return Ok(1);
        }
        match scheme_call.scheme.get("agents_per_addr").map(|slot| &slot.value) {
            None => Ok(1),
            Some(Value::Int(n)) if *n > 0 => Ok(n.unsigned_abs()),
            Some(other) => {
                let label = format!("`agents_per_addr` is {other}; expected 1 or more");
                self.fail(
                    Diagnostic::error(Code::OutOfRange, scheme_call.span, "no agent fits on an address")
                        .label(label),
                )
            }
        }
    }

    fn robot_demand(&mut self, scheme_call: &SchemeCall<'_>) -> EvalResult<AddressDemand> {
        if scheme_call.scheme.kind == RecordKind::SpreadAs {
            return self.spread_demand(scheme_call, "client_side");
        }
        let machines = self.machines(scheme_call)?;
        let agents_per_address = self.agents_per_address(scheme_call)?;
        let peak = self.bench_rate(scheme_call, None, "peak_req_rate")?;
        let load = self.bench_rate(scheme_call, Some("client_side"), "max_agent_load")?;
        let robots = ceiling(peak / load);
        let addresses_per_machine = robots.div_ceil(machines).div_ceil(u64::from(agents_per_address));
        self.check_demand(scheme_call, AddressDemand { machines, addresses_per_machine, agents_per_address })
    }

    fn spread_demand(&mut self, scheme_call: &SchemeCall<'_>, side: &str) -> EvalResult<AddressDemand> {
        let machines = self.bench_addresses(scheme_call, side, "hosts")?.len().max(1) as u64;
        let agents_per_address = self.agents_per_address(scheme_call)?;
        let peak = self.bench_rate(scheme_call, None, "peak_req_rate")?;
        let load = self.bench_rate(scheme_call, Some(side), "max_agent_load")?;
        let agents = ceiling(peak / load);
        let addresses_per_machine = agents.div_ceil(machines).div_ceil(u64::from(agents_per_address));
        self.check_demand(scheme_call, AddressDemand { machines, addresses_per_machine, agents_per_address })
    }

    fn check_demand(
        &mut self,
        scheme_call: &SchemeCall<'_>,
        demand: AddressDemand,
    ) -> EvalResult<AddressDemand> {
        if demand.machines.saturating_mul(demand.addresses_per_machine) > MAX_ITEMS {
            return self.fail(too_many_items(scheme_call.span));
        }
        Ok(demand)
    }

    /// Addresses from `addr_space`, a subnet for each machine.
    fn addresses_from_space(
        &mut self,
        scheme_call: &SchemeCall<'_>,
        side: &str,
        demand: &AddressDemand,
    ) -> EvalResult<Value> {
        let space = self.bench_addresses(scheme_call, side, "addr_space")?;
        let spread = scheme_call.scheme.kind == RecordKind::SpreadAs;
        let pools = if spread {
            slices(&space, demand.machines)
        } else {
            subnets(&space, demand.addresses_per_machine)
        };
        let wanted = demand.addresses_per_machine as usize;
        let fitting: Vec<&Vec<AddrRange>> = pools.iter().filter(|pool| pool.len() >= wanted).collect();
        if (fitting.len() as u64) < demand.machines {
            let message = format!(
                "`{side}.addr_space` is too small: {} machines need {wanted} addresses each",
                demand.machines
            );
            return self.fail(
                Diagnostic::error(Code::TooMany, scheme_call.span, message)
                    .label(format!("it has room for {} machines", fitting.len())),
            );
        }
        let mut items = Vec::new();
        for pool in fitting.into_iter().take(demand.machines as usize) {
            for address in pool.iter().take(wanted) {
                let value = Value::Address(Rc::new(side_address(side, address)));
                items.push(Item { times: demand.agents_per_address, ..Item::plain(value, scheme_call.span) });
            }
        }
        Ok(Value::array(items))
    }

    /// Addresses in the network `N.M.0.0` of a mask, from the given third octet on.
    fn addresses_from_mask(
        &mut self,
        scheme_call: &SchemeCall<'_>,
        side: &str,
        third: u64,
        count: u64,
    ) -> EvalResult<Value> {
        const PER_OCTET: u64 = 250;
        let mask = match self.bench_value(scheme_call, Some(side), "addr_mask")? {
            Value::Address(mask) => mask,
            _ => return Err(ErrorReported),
        };
        let Some([a, b, ..]) = mask.octets().filter(|_| third + count.div_ceil(PER_OCTET) <= 256) else {
            return self.fail(
                Diagnostic::error(
                    Code::BadAddress,
                    scheme_call.span,
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
        Ok(Value::list((0..count).filter_map(address), scheme_call.span))
    }

    /// Addresses of the machines of a side.
    fn side_hosts(&mut self, scheme_call: &SchemeCall<'_>, side: &str) -> EvalResult<Value> {
        let value = self.bench_value(scheme_call, Some(side), "hosts")?;
        self.fit(value, Ty::one(Base::Address).array(), scheme_call.span)
    }
}

/// The least integer not below `x`, give or take a rounding error; at least 1.
fn ceiling(x: f64) -> u64 {
    (x - 1e-9).ceil().max(1.0) as u64
}

/// An address as agents of a side have it: robots have no port, whatever the address space says.
fn side_address(side: &str, address: &AddrRange) -> AddrRange {
    if side == "client_side" { address.with_port(None) } else { address.clone() }
}

/// The address space in equal slices.
fn slices(space: &[AddrRange], machines: u64) -> Vec<Vec<AddrRange>> {
    let each = (space.len() as u64 / machines.max(1)).max(1) as usize;
    space.chunks(each).map(<[AddrRange]>::to_vec).collect()
}

/// The address space by subnet: the subnet given with an address, or the smallest that holds `wanted` addresses.
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
