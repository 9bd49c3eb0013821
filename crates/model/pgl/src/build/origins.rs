//! Origins as robots address them, address maps and substitutes.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use assay_workload::model::{Origin, OriginIndex, Weighted};

use super::Builder;
use crate::diagnostic::{Code, Diagnostic};
use crate::source::Span;
use crate::value::address::AddrRange;
use crate::value::array::Array;
use crate::value::{Record, Value};

/// Upper bound on the addresses of a group of substitutes.
const MAX_SUBSTITUTES: u64 = 1 << 16;
/// Addresses of servers that an error lists.
const LISTED: usize = 8;

impl Builder<'_> {
    /// Adds an address map, from names to addresses of servers.
    pub(super) fn add_address_map(&mut self, record: &Record, span: Span) {
        self.warn_unsupported_fields(record);
        if !self.require(record, "names", span, "list the names that robots see")
            || !self.require(record, "addresses", span, "list the addresses behind the names")
        {
            return;
        }
        let names: Vec<String> =
            self.used_items(record, "names").iter().filter_map(|c| authority(&c.value)).collect();
        let addresses: Vec<String> =
            self.used_items(record, "addresses").iter().filter_map(|c| authority(&c.value)).collect();
        if names.is_empty() || addresses.is_empty() {
            return;
        }
        match names.as_slice() {
            [name] => self.map_name(name, addresses, span),
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
        if self.mapped_names.get(name).is_some_and(|before| *before != addresses) {
            self.warn(
                Code::Duplicate,
                span,
                format!("the name {name} is mapped twice"),
                "the first map counts",
            );
            return;
        }
        self.mapped_names.insert(name.to_owned(), addresses);
    }

    /// The origins that robots address by an authority.
    ///
    /// The first authority that is used for an origin is the one in its URLs. Under a further authority, the server is another
    /// origin. A name for several addresses stands for all of them, each under its address.
    pub(super) fn origins_named(&mut self, name: &str) -> Vec<usize> {
        if let Some(known) = self.origins_by_name.get(name) {
            return known.clone();
        }
        let listening = |address: &str| self.origins_by_address.get(address).map(|(index, _)| *index);
        let found = match listening(name) {
            Some(index) => vec![(index, name.to_owned())],
            None => {
                let addresses = self.mapped_names.get(name).map_or(&[][..], Vec::as_slice);
                let one = addresses.len() == 1;
                let authority = |address: &String| if one { name.to_owned() } else { address.clone() };
                addresses
                    .iter()
                    .filter_map(|address| Some((listening(address)?, authority(address))))
                    .collect()
            }
        };
        let origins: Vec<usize> =
            found.into_iter().filter_map(|(index, authority)| self.origin_as(index, &authority)).collect();
        self.origins_by_name.insert(name.to_owned(), origins.clone());
        origins
    }

    /// The origin of a server under an authority, added if the server has another authority already.
    fn origin_as(&mut self, index: usize, authority: &str) -> Option<usize> {
        let server = self.origins.get(index)?.server;
        if self.named_origins.insert(index) {
            self.origins.get_mut(index)?.authority = authority.to_owned();
            return Some(index);
        }
        if self.origins.get(index)?.authority == authority {
            return Some(index);
        }
        if let Some(another) = self.alias_origins.get(authority) {
            return Some(*another);
        }
        let another = self.origins.len();
        if another > usize::from(OriginIndex::MAX) {
            return None;
        }
        self.origins.push(Origin { authority: authority.to_owned(), server });
        self.alias_origins.insert(authority.to_owned(), another);
        Some(another)
    }

    /// The origins of a group of robots; those that request only foreign URLs need none.
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
        // Position and weight by origin.
        let mut weights: HashMap<usize, (usize, f64)> = HashMap::new();
        let mut names = HashSet::new();
        for choice in choices {
            let Some(name) = authority(&choice.value) else { continue };
            if !names.insert(name.clone()) {
                let mut diagnostic =
                    Diagnostic::error(Code::Duplicate, at, format!("the origin {name} is listed twice"))
                        .label("expected each once");
                if choice.span != at {
                    diagnostic = diagnostic.secondary(choice.span, "the second is written here");
                }
                self.diagnostics.add(diagnostic);
                return Weighted::none();
            }
            let origins = self.origins_named(&name);
            if origins.is_empty() {
                self.report_unknown_origin(&name, choice.span);
                return Weighted::none();
            }
            let part = choice.probability / origins.len() as f64;
            for origin in origins {
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

    fn report_unknown_origin(&mut self, name: &str, span: Span) {
        // The address may be that of a server that was not built because of an error.
        if self.diagnostics.has_errors() {
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
            for value in choices.iter().flat_map(|choice| addresses_in(&choice.value)) {
                let Some(name) = authority(&value) else { continue };
                let origins = self.origins_named(&name);
                if origins.is_empty() {
                    self.report_unknown_origin(&name, *span);
                }
                group.extend(origins.iter().filter_map(|index| OriginIndex::try_from(*index).ok()));
            }
            group.sort_unstable();
            group.dedup();
            if group.len() > 1 {
                all.push(group);
            }
        }
        all
    }

    /// Forward proxies of robots.
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
        for choice in self.used_items(record, field) {
            let Value::Address(address) = &choice.value else { continue };
            if address.port().is_none() {
                self.warn(
                    Code::BadAddress,
                    choice.span,
                    "the address of a proxy has no port",
                    "port 80 is assumed",
                );
            }
            proxies.extend(authority(&choice.value));
        }
        proxies
    }
}

/// The single addresses of a range.
fn addresses_in(value: &Value) -> impl Iterator<Item = Value> {
    let range = match value {
        Value::Address(range) => Some(range.clone()),
        _ => None,
    };
    range
        .into_iter()
        .flat_map(|range| (0..range.count()).map(move |index| Value::Address(range.nth(index).into())))
}

/// The authority of a URL as `host:port`, with 80 as the default port.
pub(super) fn with_port(host: &str) -> Option<String> {
    let address = AddrRange::parse(host).ok().filter(|address| address.count() == 1)?;
    authority(&Value::Address(address.into()))
}

/// An address as `host:port`, with 80 as the default port.
fn authority(value: &Value) -> Option<String> {
    let Value::Address(address) = value else { return None };
    let address: &AddrRange = address;
    Some(match address.port() {
        Some(_) => address.authority(),
        None => address.with_port(Some(80)).authority(),
    })
}
