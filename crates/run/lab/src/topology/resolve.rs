//! From what a file says to what is started: descriptions found, names resolved, and what cannot work refused.

use std::collections::BTreeMap;

use assay_host::link::LinkSettings;
use assay_proxy::spec::{Chosen, Storing};

use super::{Cache, CacheChoice, PeerLink, PeerRef, Topology, TopologyChoice};
use crate::description::Description;
use crate::error::LabError;
use crate::mode::{Mode, PeerProtocol, PeerRelation};

/// The most caches of one topology.
const MOST_CACHES: usize = 64;
/// Each takes a thread that carries its packets.
const MOST_LINKS: usize = 32;
/// The protocols of queries that the built-in proxy can receive and send.
const BUILTIN: [PeerProtocol; 2] = [PeerProtocol::Icp, PeerProtocol::Hash];

/// Finds every description with `find` (none: the built-in proxy), and every cache that is named.
pub fn resolve(
    choice: &TopologyChoice,
    find: impl Fn(&str) -> Result<Option<Description>, LabError>,
) -> Result<Topology, LabError> {
    let mut caches = Vec::new();
    for entry in &choice.caches {
        let proxy = entry.proxy.as_deref().unwrap_or(&choice.usual.proxy);
        let mut description = find(proxy)?;
        let mut set = choice.usual.set.clone();
        if entry.proxy.is_some() {
            // Settings of another proxy are none of its own.
            set.clear();
        }
        set.extend(entry.set.clone());
        let storing = match &mut description {
            Some(description) => description.set(&set).map(|()| Storing::default())?,
            None => storing(&set).map_err(|error| wrong(entry, &error.to_string()))?,
        };
        if description.is_some() && !entry.peer_delay.is_zero() {
            let why = "only the built-in proxy can be made to wait longer for others (`peer-delay`); a link between caches \
                       (`peer-link`) is for all of them, and takes root";
            return Err(wrong(entry, why));
        }
        for name in members(entry) {
            caches.push(Cache {
                name,
                description: description.clone(),
                storing,
                memory_bytes: entry.memory_bytes.unwrap_or(choice.usual.memory_bytes),
                disk_bytes: entry.disk_bytes.unwrap_or(choice.usual.disk_bytes),
                peers: Vec::new(),
                peer_delay: entry.peer_delay,
                proxy_only: entry.proxy_only,
                never_direct: entry.never_direct,
                robots: robots(entry, choice),
            });
        }
    }
    if caches.len() > MOST_CACHES {
        return Err(LabError::plan(format!(
            "the topology has {} caches, and {MOST_CACHES} are the most",
            caches.len()
        )));
    }
    tie(choice, &mut caches)?;
    let caches = parents_first(caches)?;
    let mode = mode(choice, &caches)?;
    check(choice, &caches)?;
    let entry_of = |cache: &Cache| choice.caches.iter().find(|entry| members(entry).contains(&cache.name));
    let links = peer_links(&caches, entry_of)?;
    Ok(Topology { name: choice.name.clone(), mode, caches, links })
}

/// Settings that a built-in cache among others cannot have.
#[derive(Debug, thiserror::Error)]
enum StoringError {
    #[error("{0}")]
    Setting(String),
    #[error("the built-in proxy does not prefetch among other caches")]
    Prefetch,
}

/// Objects that a built-in cache stores. Prefetching is for one that stands alone.
fn storing(set: &BTreeMap<String, String>) -> Result<Storing, StoringError> {
    let mut chosen = Chosen::default();
    for (name, value) in set {
        chosen.set(name, value).map_err(|error| StoringError::Setting(error.to_string()))?;
    }
    match chosen.prefetch {
        Some(_) => Err(StoringError::Prefetch),
        None => Ok(chosen.storing),
    }
}

fn wrong(entry: &CacheChoice, what: &str) -> LabError {
    LabError::plan(format!("cache `{}` (line {}): {what}", entry.name, entry.line))
}

/// Names of the caches of an entry.
fn members(entry: &CacheChoice) -> Vec<String> {
    if entry.count == 1 {
        return vec![entry.name.clone()];
    }
    (1..=entry.count).map(|number| format!("{}{number}", entry.name)).collect()
}

/// Robots of a cache that does not say: as many as another's, and none of one that others go through.
fn robots(entry: &CacheChoice, choice: &TopologyChoice) -> assay_workload::cache_assignment::Share {
    let is_parent = choice.caches.iter().any(|other| other.parents.contains(&entry.name));
    let usual = assay_workload::cache_assignment::Share::Weight(if is_parent { 0.0 } else { 1.0 });
    entry.robots.clone().unwrap_or(usual)
}

/// Finds the caches that each cache queries.
fn tie(choice: &TopologyChoice, caches: &mut [Cache]) -> Result<(), LabError> {
    let names: Vec<String> = caches.iter().map(|cache| cache.name.clone()).collect();
    if let Some(twice) = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)) {
        return Err(LabError::plan(format!("there are two caches called `{}`", twice.1)));
    }
    for entry in &choice.caches {
        if entry.count == 1 && entry.parents.contains(&entry.name) {
            return Err(wrong(entry, "it cannot be its own parent; name another cache in `parents`"));
        }
        for name in members(entry) {
            let own = names.iter().position(|other| *other == name).unwrap_or_default();
            for (relation, named) in
                [(PeerRelation::Sibling, &entry.siblings), (PeerRelation::Parent, &entry.parents)]
            {
                let named =
                    named.iter().filter_map(|name| choice.caches.iter().find(|other| other.name == *name));
                for to in
                    named.flat_map(members).filter_map(|name| names.iter().position(|other| *other == name))
                {
                    if to == own {
                        continue;
                    }
                    if caches[own].peers.iter().any(|bond| bond.to == to) {
                        return Err(wrong(entry, &format!("`{}` is named twice", names[to])));
                    }
                    caches[own].peers.push(PeerRef { to, relation, protocol: entry.protocol });
                }
            }
        }
    }
    Ok(())
}

/// Orders caches so that parents are started before their children; refuses circles, in which a request could go
/// round for ever.
fn parents_first(caches: Vec<Cache>) -> Result<Vec<Cache>, LabError> {
    let mut order: Vec<usize> = Vec::new();
    while order.len() < caches.len() {
        let is_free = |place: usize| {
            let parents = caches[place].peers.iter().filter(|bond| bond.relation == PeerRelation::Parent);
            !order.contains(&place) && parents.into_iter().all(|bond| order.contains(&bond.to))
        };
        match (0..caches.len()).find(|&place| is_free(place)) {
            Some(next) => order.push(next),
            None => {
                let left = (0..caches.len()).filter(|place| !order.contains(place));
                let names: Vec<&str> = left.map(|place| caches[place].name.as_str()).collect();
                return Err(LabError::plan(format!(
                    "{} are each other's parents, or ask those who are: requests could go round for ever",
                    names.join(", ")
                )));
            }
        }
    }
    let place_of = |old: usize| order.iter().position(|place| *place == old).unwrap_or(old);
    let moved = |old: &usize| {
        let mut cache = caches[*old].clone();
        cache.peers.iter_mut().for_each(|bond| bond.to = place_of(bond.to));
        cache
    };
    Ok(order.iter().map(moved).collect())
}

/// Mode in which robots address it: as configured, or the first way that all know.
fn mode(choice: &TopologyChoice, caches: &[Cache]) -> Result<Mode, LabError> {
    let knows = |cache: &Cache, mode: &Mode| {
        cache.description.as_ref().is_none_or(|description| description.modes.contains(mode))
    };
    let modes: Vec<Mode> = choice.mode.map_or(vec![Mode::Reverse, Mode::Forward], |mode| vec![mode]);
    let all = |mode: &&Mode| caches.iter().all(|cache| knows(cache, mode));
    modes.iter().find(all).copied().ok_or_else(|| {
        let without = |mode: &Mode| caches.iter().find(|cache| !knows(cache, mode)).map(Cache::proxy);
        let words: Vec<String> = modes
            .iter()
            .map(|mode| format!("{} is no {} proxy", without(mode).unwrap_or("one"), mode.name()))
            .collect();
        LabError::plan(format!("not all caches can be spoken to in one way: {}", words.join(", and ")))
    })
}

/// Refuses what a proxy does not know, and what makes no sense.
fn check(choice: &TopologyChoice, caches: &[Cache]) -> Result<(), LabError> {
    for cache in caches {
        for bond in &cache.peers {
            let other = &caches[bond.to];
            let words = |what: String| {
                LabError::plan(format!("topology {}: cache `{}`: {what}", choice.name, cache.name))
            };
            if bond.relation == PeerRelation::Sibling && bond.protocol == PeerProtocol::Hash {
                let more = "a sibling has to be asked whether it has something: by icp, htcp or digest";
                return Err(words(more.into()));
            }
            let (relation, protocol) = (bond.relation.name(), bond.protocol.name());
            if !queries(cache).contains(&(bond.relation, bond.protocol)) {
                return Err(words(format!(
                    "{} does not ask a {relation} by {protocol}; it knows: {}",
                    cache.proxy(),
                    known(cache)
                )));
            }
            if bond.protocol != PeerProtocol::Hash && !serves(other).contains(&bond.protocol) {
                return Err(words(format!(
                    "`{}` is {}, which cannot be queried by {protocol}",
                    other.name,
                    other.proxy()
                )));
            }
        }
        let has_parent = cache.peers.iter().any(|bond| bond.relation == PeerRelation::Parent);
        if cache.never_direct && !has_parent {
            return Err(LabError::plan(format!(
                "cache `{}` is never to ask origins itself (never-direct), and has no parent that would",
                cache.name
            )));
        }
        match &cache.description {
            Some(description) => {
                description.check_capacity(cache.memory_bytes, cache.disk_bytes).map_err(LabError::plan)?;
            }
            None if cache.memory_bytes == 0 => {
                return Err(LabError::plan(format!(
                    "cache `{}` keeps everything in memory, and has none",
                    cache.name
                )));
            }
            None => {}
        }
    }
    Ok(())
}

fn queries(cache: &Cache) -> Vec<(PeerRelation, PeerProtocol)> {
    match &cache.description {
        None => vec![
            (PeerRelation::Sibling, PeerProtocol::Icp),
            (PeerRelation::Parent, PeerProtocol::Icp),
            (PeerRelation::Parent, PeerProtocol::Hash),
        ],
        Some(description) => {
            let hierarchy = &description.hierarchy;
            let siblings = hierarchy.siblings.iter().map(|protocol| (PeerRelation::Sibling, *protocol));
            siblings
                .chain(hierarchy.parents.iter().map(|protocol| (PeerRelation::Parent, *protocol)))
                .collect()
        }
    }
}

fn serves(cache: &Cache) -> &[PeerProtocol] {
    cache.description.as_ref().map_or(&BUILTIN, |description| &description.hierarchy.serves)
}

fn known(cache: &Cache) -> String {
    let all: Vec<String> = queries(cache)
        .iter()
        .map(|(relation, protocol)| format!("{} by {}", relation.name(), protocol.name()))
        .collect();
    if all.is_empty() { "nobody".into() } else { all.join(", ") }
}

/// The links that entries request; `entry_of` gives a cache's own.
fn peer_links<'c>(
    caches: &[Cache],
    entry_of: impl Fn(&Cache) -> Option<&'c CacheChoice>,
) -> Result<Vec<PeerLink>, LabError> {
    let mut links: Vec<PeerLink> = Vec::new();
    for (own, cache) in caches.iter().enumerate() {
        let Some((entry, settings)) = entry_of(cache).and_then(|entry| Some((entry, entry.peer_link?)))
        else {
            continue;
        };
        if cache.peers.is_empty() {
            return Err(wrong(entry, "it asks no other cache, and so has no `peer-link`"));
        }
        for bond in &cache.peers {
            let ends = [own.min(bond.to), own.max(bond.to)];
            match links.iter().find(|link| link.ends == ends) {
                Some(link) if link.settings != settings => {
                    return Err(wrong(entry, &differ(&caches[bond.to], link.settings, settings)));
                }
                Some(_) => {}
                None => links.push(PeerLink { ends, settings }),
            }
        }
    }
    if links.len() > MOST_LINKS {
        return Err(LabError::plan(format!(
            "{} links between caches are more than one machine carries well; {MOST_LINKS} are the most",
            links.len()
        )));
    }
    Ok(links)
}

fn differ(other: &Cache, one: LinkSettings, two: LinkSettings) -> String {
    format!("the link to `{}` is {two} here and {one} there; a link is the same at both ends", other.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{CacheDefaults, draw, read};

    const TREE: &str = r#"proxy = "builtin"
memory = "16MB"
[[cache]]
name = "y"
count = 3
siblings = ["y"]
parents = ["top"]
[[cache]]
name = "top"
memory = "64MB"
robots = 0.5
"#;

    fn usual() -> CacheDefaults {
        CacheDefaults {
            proxy: "builtin".into(),
            memory_bytes: 1 << 30,
            disk_bytes: 1 << 30,
            set: Default::default(),
        }
    }

    fn topology(text: &str) -> Result<Topology, String> {
        let choice = read("t.toml", "tree", text, usual()).map_err(|error| error.to_string())?;
        let find = |name: &str| match name {
            "builtin" => Ok(None),
            name => Ok(Some(crate::find(name, &[])?)),
        };
        resolve(&choice, find).map_err(|error| error.to_string())
    }

    #[test]
    fn one_entry_may_stand_for_several_and_parents_come_first() {
        let tree = topology(TREE).unwrap();
        let names: Vec<&str> = tree.caches.iter().map(|cache| cache.name.as_str()).collect();
        assert_eq!(names, ["top", "y1", "y2", "y3"]);
        let y2: Vec<(usize, PeerRelation)> =
            tree.caches[2].peers.iter().map(|bond| (bond.to, bond.relation)).collect();
        assert_eq!(y2, [(1, PeerRelation::Sibling), (3, PeerRelation::Sibling), (0, PeerRelation::Parent)]);
        assert_eq!((tree.caches[0].memory_bytes, tree.caches[1].memory_bytes), (64 << 20, 16 << 20));
        assert_eq!(tree.clients(0).collect::<Vec<_>>(), [1, 2, 3]);
        let without = topology(&TREE.replace("robots = 0.5\n", "")).unwrap();
        assert_eq!(without.caches[0].robots, assay_workload::cache_assignment::Share::Weight(0.0));
    }

    #[test]
    fn a_built_in_cache_stores_as_its_settings_say() {
        let with =
            |set: &str| topology(&TREE.replace("robots = 0.5\n", &format!("robots = 0.5\nset = {set}\n")));
        let tree = with("{ policy = \"sieve\", admission = \"second\" }").unwrap();
        assert_eq!(
            (tree.caches[0].storing.policy.name(), tree.caches[1].storing),
            ("sieve", Storing::default())
        );
        let all = topology(&TREE.replace("memory = \"16MB\"", "set = { policy = \"lfu\" }")).unwrap();
        assert!(all.caches[1..].iter().all(|cache| cache.storing.policy.name() == "lfu"));
        let said = with("{ policy = \"seive\" }").unwrap_err();
        assert!(said.contains("cache `top`") && said.contains("it takes one of lru"), "{said}");
        let said = with("{ prefetch = \"embedded\" }").unwrap_err();
        assert!(said.contains("prefetch"), "{said}");
    }

    #[test]
    fn nobody_is_their_own_parent() {
        let said = topology("proxy = \"builtin\"\n[[cache]]\nname = \"y\"\nparents = [\"y\"]\n").unwrap_err();
        assert!(said.contains("cannot be its own parent"), "{said}");
    }

    #[test]
    fn a_topology_is_drawn_from_robots_to_origins() {
        let drawn = draw(&topology(TREE).unwrap());
        assert!(drawn.contains("y1") && drawn.contains("sibling") && drawn.contains("origins"), "{drawn}");
    }

    #[test]
    fn what_cannot_work_is_refused_with_its_reason() {
        for (from, to, words) in [
            (
                "siblings = [\"y\"]",
                "siblings = [\"z\"]",
                "t.toml:6: siblings: no cache is called `z`; the caches are: y, top",
            ),
            ("parents = [\"top\"]", "parents = [\"tpo\"]", "no cache is called `tpo`; did you mean `top`?"),
            ("siblings", "sibling", "unknown field `sibling`; did you mean `siblings`?"),
            ("robots = 0.5", "parents = [\"y\"]", "round for ever"),
            ("parents = [\"top\"]", "protocol = \"hash\"", "a sibling has to be asked"),
            ("parents = [\"top\"]", "protocol = \"htcp\"", "builtin does not ask a sibling by htcp"),
            ("parents = [\"top\"]", "protocol = \"udp\"", "none of \"icp\", \"htcp\""),
            ("parents = [\"top\"]", "never-direct = true", "has no parent"),
            ("robots = 0.5", "robots = true", "write a weight"),
            (
                "robots = 0.5",
                "proxy = \"squid\"\npeer-delay = \"5ms\"",
                "only the built-in proxy can be made",
            ),
            ("robots = 0.5", "peer-link = \"delay=5ms\"", "it asks no other cache"),
            ("robots = 0.5", "siblings = [\"y\"]\npeer-link = \"x=5ms\"", "t.toml:12: peer-link:"),
            ("robots = 0.5", "proxy = \"nginx\"", "`top` is nginx, which cannot be queried by icp"),
            ("\"top\"\nmemory", "\"y1\"\nmemory", "no cache is called `top`"),
            ("name = \"y\"", "name = \"y y\"", "is no name"),
            ("parents = [\"top\"]", "parents = [\"y\"]", "is named twice"),
        ] {
            let error = topology(&TREE.replacen(from, to, 1)).unwrap_err();
            assert!(error.contains(words), "{words} is not in: {error}");
        }
    }

    #[test]
    fn a_link_is_between_two_peers_and_the_same_at_both_ends() {
        let linked = TREE.replace("count = 3", "count = 3\npeer-link = \"delay=5ms\"");
        let ends: Vec<[usize; 2]> = topology(&linked).unwrap().links.iter().map(|link| link.ends).collect();
        assert_eq!(ends, [[1, 2], [1, 3], [0, 1], [2, 3], [0, 2], [0, 3]]);
        assert!(topology(TREE).unwrap().links.is_empty());
        let two = "[[cache]]\nname = \"a\"\nsiblings = [\"b\"]\npeer-link = \"delay=5ms\"\n\
                   [[cache]]\nname = \"b\"\nsiblings = [\"a\"]\n";
        assert_eq!(topology(two).unwrap().links.len(), 1);
        let error = topology(&format!("{two}peer-link = \"delay=6ms\"\n")).unwrap_err();
        assert!(error.contains("the same at both ends"), "{error}");
    }

    proptest::proptest! {
        #[test]
        fn no_damage_makes_it_panic(at in 0usize..TREE.len(), with in "[ -~]{0,3}") {
            let mut text = TREE.to_owned();
            text.replace_range(at..at + 1, &with);
            let _ = topology(&text);
        }
    }
}
