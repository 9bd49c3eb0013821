//! A topology, drawn. As text, from the robots' side to the origins'.

use assay_base::settings::show::bytes;
use assay_workload::cache_assignment::Share;

use super::{Cache, Topology};
use crate::mode::PeerRelation;

/// A line for each cache: its clients, what it is, which caches it queries.
pub fn draw(topology: &Topology) -> String {
    let caches = &topology.caches;
    let width = |text: &dyn Fn(&Cache) -> String| {
        caches.iter().map(|cache| text(cache).chars().count()).max().unwrap_or(0)
    };
    let (robots_width, name_width) = (width(&robots), width(&|cache| cache.name.clone()));
    let what_width = width(&what);
    let mut text = String::new();
    // Those that robots speak to first, parents last.
    for cache in caches.iter().rev() {
        let robots = robots(cache);
        let arrow = if robots.is_empty() { "   " } else { "──▶" };
        text += &format!(
            "{robots:>robots_width$} {arrow} {:name_width$}  {:what_width$}  {}\n",
            cache.name,
            what(cache),
            queries(topology, cache)
        );
    }
    text
}

fn robots(cache: &Cache) -> String {
    match &cache.robots {
        Share::Weight(weight) if *weight <= 0.0 => String::new(),
        Share::Weight(1.0) => "robots".into(),
        Share::Weight(weight) => format!("robots × {weight}"),
        Share::Groups(names) => names.join(", "),
    }
}

fn what(cache: &Cache) -> String {
    let has = |store| cache.description.as_ref().is_none_or(|known| known.capacity.stores.contains(&store));
    let mut words = vec![cache.proxy().to_owned()];
    if has(crate::description::Store::Memory) {
        words.push(format!("{} memory", bytes(cache.memory_bytes)));
    }
    if cache.description.is_some() && has(crate::description::Store::Disk) {
        words.push(format!("{} disk", bytes(cache.disk_bytes)));
    }
    words.join(", ")
}

fn queries(topology: &Topology, cache: &Cache) -> String {
    let caches = &topology.caches;
    let mut lines = Vec::new();
    for (relation, word, arrow) in
        [(PeerRelation::Sibling, "sibling", "◀─▶"), (PeerRelation::Parent, "parent", "──▶")]
    {
        let bonds: Vec<_> = cache.peers.iter().filter(|bond| bond.relation == relation).collect();
        let names: Vec<&str> = bonds.iter().map(|bond| topology.caches[bond.to].name.as_str()).collect();
        if let Some(first) = bonds.first() {
            let plural = if names.len() > 1 { "s" } else { "" };
            lines.push(format!("{arrow} {word}{plural} {} by {}", names.join(", "), first.protocol.name()));
        }
    }
    if !cache.never_direct {
        lines.push("──▶ origins".into());
    }
    if !cache.peer_delay.is_zero() {
        lines.push(format!("({:?} to other caches and back)", cache.peer_delay));
    }
    if cache.proxy_only {
        lines.push("(keeps no copies of siblings' objects)".into());
    }
    for link in &topology.links {
        let named = link.ends.map(|place| &caches[place]);
        if named[0].name == cache.name {
            lines.push(format!("(link to {}: {})", named[1].name, link.settings));
        }
    }
    lines.join("  ")
}
