//! The origins that robots see.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use assay_workload::model::{Origin, OriginIndex, Weighted};

use super::Builder;
use crate::diagnostic::{Code, Diagnostic};
use crate::source::Span;
use crate::value::address::AddrRange;
use crate::value::array::Array;
use crate::value::{Record, Value};

/// Addresses in one group of substitutes.
const MAX_SUBSTITUTES: u64 = 1 << 16;
/// Addresses of servers that a message lists.
const LISTED: usize = 8;

impl Builder<'_> {
    /// An address map: names stand for the addresses behind them.
    pub(super) fn map(&mut self, record: &Record, span: Span) {
        self.note_fields(record);
        if !self.require(record, "names", span, "list the names that robots see")
            || !self.require(record, "addresses", span, "list the addresses behind the names")
        {
            return;
        }
        let names: Vec<String> =
            self.members(record, "names").iter().filter_map(|c| visible(&c.value)).collect();
        let addresses: Vec<String> =
            self.members(record, "addresses").iter().filter_map(|c| visible(&c.value)).collect();
        if names.is_empty() || addresses.is_empty() {
            return;
        }
        match names.as_slice() {
            [one] => self.map_name(one, addresses, span),
            many if many.len() >= addresses.len() => {
                for (name, address) in many.iter().zip(addresses.iter().cycle()) {
                    self.map_name(name, vec![address.clone()], span);
                }
            }
            many => {
                let label = format!("{} names for {} addresses", many.len(), addresses.len());
                self.error(
                    Code::Conflict,
                    span,
                    "several names cannot share more addresses than there are names",
                    label,
                );
            }
        }
    }

    fn map_name(&mut self, name: &str, addresses: Vec<String>, span: Span) {
        if self.names.get(name).is_some_and(|before| *before != addresses) {
            self.warn(
                Code::Duplicate,
                span,
                format!("the name {name} is mapped twice"),
                "the first map counts",
            );
            return;
        }
        self.names.insert(name.to_owned(), addresses);
    }

    /// The origins that an address or a name stands for, as robots see them.
    ///
    /// An origin is requested as what it is first seen as. A robot that sees it under another name too sees another origin of the
    /// same server. A name for several addresses stands for all of them, each under its address.
    pub(super) fn seen_as(&mut self, name: &str) -> Vec<usize> {
        if let Some(known) = self.visible.get(name) {
            return known.clone();
        }
        let real = |address: &str| self.origin_places.get(address).map(|(index, _)| *index);
        let found = match real(name) {
            Some(index) => vec![(index, name.to_owned())],
            None => {
                let behind = self.names.get(name).map_or(&[][..], Vec::as_slice);
                let one = behind.len() == 1;
                let shown = |address: &String| if one { name.to_owned() } else { address.clone() };
                behind.iter().filter_map(|address| Some((real(address)?, shown(address)))).collect()
            }
        };
        let seen: Vec<usize> =
            found.into_iter().filter_map(|(index, shown)| self.seen_origin(index, &shown)).collect();
        self.visible.insert(name.to_owned(), seen.clone());
        seen
    }

    fn seen_origin(&mut self, index: usize, authority: &str) -> Option<usize> {
        let server = self.origins.get(index)?.server;
        if self.seen.insert(index) {
            self.origins.get_mut(index)?.authority = authority.to_owned();
            return Some(index);
        }
        if self.origins.get(index)?.authority == authority {
            return Some(index);
        }
        if let Some(another) = self.extra_origins.get(authority) {
            return Some(*another);
        }
        let another = self.origins.len();
        if another > usize::from(OriginIndex::MAX) {
            return None;
        }
        self.origins.push(Origin { authority: authority.to_owned(), server });
        self.extra_origins.insert(authority.to_owned(), another);
        Some(another)
    }

    /// The origins of a group of robots.
    ///
    /// Robots whose every request is foreign need none.
    pub(super) fn robot_origins(
        &mut self,
        record: &Record,
        span: Span,
        all_foreign: bool,
    ) -> Weighted<OriginIndex> {
        let help = "name the servers that they send requests to: `origins = S.addresses;`";
        if all_foreign && record.get("origins").is_none() {
            return Weighted::none();
        }
        if !self.require(record, "origins", span, help) {
            return Weighted::none();
        }
        let choices = self.choices(record, "origins");
        let at = record.get("origins").map_or(span, |slot| slot.span);
        if choices.is_empty() && !record.get("origins").is_some_and(|slot| slot.value.is_broken()) {
            self.error(Code::Required, at, "these robots see no server", "expected addresses of servers");
        }
        let mut weights: HashMap<usize, (usize, f64)> = HashMap::new();
        let mut seen = HashSet::new();
        for choice in choices {
            let Some(name) = visible(&choice.value) else { continue };
            if !seen.insert(name.clone()) {
                let mut diagnostic =
                    Diagnostic::error(Code::Duplicate, at, format!("the origin {name} is listed twice"))
                        .label("expected each once");
                if choice.span != at {
                    diagnostic = diagnostic.also(choice.span, "the second is written here");
                }
                self.diagnostics.add(diagnostic);
                return Weighted::none();
            }
            let behind = self.seen_as(&name);
            if behind.is_empty() {
                self.unknown_origin(&name, choice.span);
                return Weighted::none();
            }
            let part = choice.probability / behind.len() as f64;
            for origin in behind {
                let place = weights.len();
                weights.entry(origin).or_insert((place, 0.0)).1 += part;
            }
        }
        let mut ordered: Vec<(usize, usize, f64)> =
            weights.into_iter().map(|(origin, (place, weight))| (place, origin, weight)).collect();
        ordered.sort_unstable_by_key(|(place, ..)| *place);
        Weighted::new(
            ordered
                .into_iter()
                .filter_map(|(_, origin, weight)| Some((OriginIndex::try_from(origin).ok()?, weight))),
        )
    }

    fn unknown_origin(&mut self, name: &str, span: Span) {
        // Servers that could not be made were reported; what points at them would be right.
        if self.diagnostics.failed() {
            return;
        }
        let known: Vec<&str> =
            self.origins.iter().take(LISTED).map(|origin| origin.authority.as_str()).collect();
        let more = self.origins.len().saturating_sub(LISTED);
        let help = match (known.is_empty(), more) {
            (true, _) => "no server is used: `use()` the servers too".to_owned(),
            (false, 0) => format!("servers are at {}", known.join(", ")),
            (false, more) => format!("servers are at {} and {more} more", known.join(", ")),
        };
        self.diagnostics.add(
            Diagnostic::error(Code::UnknownOrigin, span, format!("no server has the address {name}"))
                .label("robots would ask nobody")
                .help(help),
        );
    }

    /// Groups of origins that stand for one another.
    pub(super) fn substitutes(&mut self, groups: &[(Rc<Array>, Span)]) -> Vec<Vec<OriginIndex>> {
        let mut all = Vec::new();
        for (array, span) in groups {
            let Some((choices, _)) = array.choices().filter(|_| array.count() <= MAX_SUBSTITUTES) else {
                let label = format!("at most {MAX_SUBSTITUTES} in a group");
                self.error(Code::TooMany, *span, "too many substitutes", label);
                continue;
            };
            let mut group: Vec<OriginIndex> = Vec::new();
            for value in choices.iter().flat_map(|choice| each(&choice.value)) {
                let Some(name) = visible(&value) else { continue };
                let seen = self.seen_as(&name);
                if seen.is_empty() {
                    self.unknown_origin(&name, *span);
                }
                group.extend(seen.iter().filter_map(|index| OriginIndex::try_from(*index).ok()));
            }
            group.sort_unstable();
            group.dedup();
            if group.len() > 1 {
                all.push(group);
            }
        }
        all
    }

    /// Forward proxies that the workload names.
    pub(super) fn robot_proxies(&mut self, record: &Record) -> Vec<String> {
        let new = record.get("http_proxies").map(|slot| slot.span);
        let old = record.get("proxies").map(|slot| slot.span);
        if let (Some(_), Some(old)) = (new, old) {
            self.error(
                Code::Conflict,
                old,
                "`proxies` is the old name of `http_proxies`",
                "expected one of the two",
            );
        }
        let field = if new.is_some() { "http_proxies" } else { "proxies" };
        let mut proxies = Vec::new();
        for choice in self.members(record, field) {
            let Value::Address(address) = &choice.value else { continue };
            if address.port().is_none() {
                self.warn(
                    Code::BadAddress,
                    choice.span,
                    "the address of a proxy has no port",
                    "port 80 is assumed",
                );
            }
            proxies.extend(visible(&choice.value));
        }
        proxies
    }
}

/// The single addresses of a range.
fn each(value: &Value) -> impl Iterator<Item = Value> {
    let range = match value {
        Value::Address(range) => Some(range.clone()),
        _ => None,
    };
    range
        .into_iter()
        .flat_map(|range| (0..range.count()).map(move |index| Value::Address(range.nth(index).into())))
}

/// A host of a URL as `host:port`, the port being 80 unless it says otherwise.
pub(super) fn with_port(authority: &str) -> Option<String> {
    let address = AddrRange::parse(authority).ok().filter(|address| address.count() == 1)?;
    visible(&Value::Address(address.into()))
}

/// An address as `host:port`, the port being 80 unless it says otherwise.
fn visible(value: &Value) -> Option<String> {
    let Value::Address(address) = value else { return None };
    let address: &AddrRange = address;
    Some(match address.port() {
        Some(_) => address.authority(),
        None => address.with_port(Some(80)).authority(),
    })
}
