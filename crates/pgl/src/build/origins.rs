//! Which origins do robots see?

use std::collections::{HashMap, HashSet};

use assay_workload::model::{OriginIndex, Weighted};

use super::Builder;
use crate::diagnostic::{Code, Diagnostic};
use crate::source::Span;
use crate::value::address::AddrRange;
use crate::value::{Record, Value};

/// Names of an address map with the addresses behind each, as authorities without a default port.
pub(super) type Names = HashMap<String, Vec<String>>;

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
            self.choices(record, "names").iter().filter_map(|c| visible(&c.value)).collect();
        let addresses: Vec<String> =
            self.choices(record, "addresses").iter().filter_map(|c| visible(&c.value)).collect();
        if names.is_empty() || addresses.is_empty() {
            return;
        }
        let mut map = Names::new();
        match names.as_slice() {
            [one] => {
                map.insert(one.clone(), addresses);
            }
            many if many.len() >= addresses.len() => {
                for (name, address) in many.iter().zip(addresses.iter().cycle()) {
                    map.insert(name.clone(), vec![address.clone()]);
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
                return;
            }
        }
        self.not_acted_on(
            "AddrMap",
            span,
            "robots ask for the real addresses behind a name, not for the name",
        );
        self.maps.push(map);
    }

    /// The origins of a group of robots.
    pub(super) fn robot_origins(&mut self, record: &Record, span: Span) -> Weighted<OriginIndex> {
        let help = "name the servers they ask: `origins = S.addresses;`";
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
            let behind = self.behind(&name);
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

    /// The origins that a visible address stands for.
    fn behind(&self, name: &str) -> Vec<usize> {
        let origin = |authority: &str| self.origin_places.get(authority).map(|(index, _)| *index);
        match origin(name) {
            Some(index) => vec![index],
            None => {
                let mapped = self.maps.iter().find_map(|map| map.get(name));
                mapped.into_iter().flatten().filter_map(|authority| origin(authority)).collect()
            }
        }
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
        for choice in self.choices(record, field) {
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

/// An address as `host:port`, the port being 80 unless it says otherwise.
fn visible(value: &Value) -> Option<String> {
    let Value::Address(address) = value else { return None };
    let address: &AddrRange = address;
    Some(match address.port() {
        Some(_) => address.authority(),
        None => address.with_port(Some(80)).authority(),
    })
}
