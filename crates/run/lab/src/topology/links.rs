//! The links between caches.

use assay_host::link::LinkSettings;

use super::{Cache, CacheChoice, PeerLink};
use crate::error::LabError;

/// Each takes a thread that carries its packets.
const MOST_LINKS: usize = 32;

/// The links that entries request; `entry_of` gives a cache's own.
pub(super) fn between<'c>(
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
            return Err(super::resolve::wrong(entry, "it asks no other cache, and so has no `peer-link`"));
        }
        for bond in &cache.peers {
            let ends = [own.min(bond.to), own.max(bond.to)];
            match links.iter().find(|link| link.ends == ends) {
                Some(link) if link.settings != settings => {
                    return Err(super::resolve::wrong(
                        entry,
                        &differ(&caches[bond.to], link.settings, settings),
                    ));
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
