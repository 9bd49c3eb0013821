//! From the text of a file to a [`TopologyChoice`], and from a list of tables to its caches.

use std::collections::BTreeMap;
use std::time::Duration;

use assay_base::settings::suggest::nearest;
use assay_base::settings::{Fields, Mistake, Source, Value};
use assay_workload::cache_assignment::Share;
use strum::VariantArray;

use super::{CacheChoice, CacheDefaults, TopologyChoice};
use crate::mode::PeerProtocol;
use crate::units;

/// The fields of a cache.
pub const CACHE_FIELDS: [&str; 14] = [
    "name",
    "count",
    "proxy",
    "memory",
    "disk",
    "set",
    "siblings",
    "parents",
    "protocol",
    "peer-delay",
    "peer-link",
    "proxy-only",
    "never-direct",
    "robots",
];
const TOP: [&str; 6] = ["proxy", "mode", "memory", "disk", "set", "cache"];
/// The most that one entry may stand for.
const MOST_ALIKE: u64 = 64;

/// Reads a topology; `file` names it in messages, `name` is what it is called, `usual` holds where it says nothing.
pub fn read(file: &str, name: &str, text: &str, usual: CacheDefaults) -> Result<TopologyChoice, Mistake> {
    let source = Source { file, text };
    let table = source.parse()?;
    let fields = Fields::whole(source, "a topology", &table);
    fields.only(&TOP)?;
    let size = |key: &str| fields.get(key).map(|value| value.read(units::size)).transpose();
    let usual = CacheDefaults {
        proxy: fields.get("proxy").map_or(Ok(usual.proxy.as_str()), |value| value.text())?.to_owned(),
        memory_bytes: size("memory")?.unwrap_or(usual.memory_bytes),
        disk_bytes: size("disk")?.unwrap_or(usual.disk_bytes),
        set: usual.set.into_iter().chain(settings(&fields)?).collect(),
    };
    let tables = fields.need("cache", "the caches, a [[cache]] each")?;
    Ok(TopologyChoice {
        name: name.to_owned(),
        mode: fields.get("mode").map(|value| value.read(units::mode)).transpose()?,
        usual,
        caches: caches(&tables)?,
    })
}

/// Reads a list of caches.
pub fn caches(tables: &Value<'_>) -> Result<Vec<CacheChoice>, Mistake> {
    let tables: Vec<Fields<'_>> =
        tables.list()?.iter().map(|value| value.fields("a cache")).collect::<Result<_, _>>()?;
    let mut found: Vec<CacheChoice> = Vec::new();
    for table in &tables {
        table.only(&CACHE_FIELDS)?;
        let cache = cache(table)?;
        if found.iter().any(|other| other.name == cache.name) {
            return Err(table.wrong(&format!("there are two caches called `{}`", cache.name)));
        }
        found.push(cache);
    }
    for table in &tables {
        for key in ["siblings", "parents"] {
            names(table, key, &found)?;
        }
    }
    Ok(found)
}

fn cache(table: &Fields<'_>) -> Result<CacheChoice, Mistake> {
    let name = table.need("name", "what it is called")?;
    let is_name = |text: &str| {
        let all_fit = text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        (all_fit && !text.is_empty() && text.len() <= 24).then(|| text.to_owned())
    };
    let name = name.read(|text| {
        is_name(text).ok_or_else(|| format!("`{text}` is no name: up to 24 letters, digits and `-`"))
    })?;
    let size = |key: &str| table.get(key).map(|value| value.read(units::size)).transpose();
    let flag = |key: &str| table.get(key).map_or(Ok(false), |value| value.flag());
    let texts = |key: &str| -> Result<Vec<String>, Mistake> {
        let list = table.get(key).map_or(Ok(Vec::new()), |value| value.list())?;
        list.iter().map(|value| Ok(value.text()?.to_owned())).collect()
    };
    Ok(CacheChoice {
        name,
        count: table.get("count").map_or(Ok(1), |value| value.whole(1, MOST_ALIKE))? as u32,
        proxy: table.get("proxy").map(|value| value.text()).transpose()?.map(str::to_owned),
        memory_bytes: size("memory")?,
        disk_bytes: size("disk")?,
        set: settings(table)?,
        siblings: texts("siblings")?,
        parents: texts("parents")?,
        protocol: table.get("protocol").map_or(Ok(PeerProtocol::Icp), |value| value.read(protocol))?,
        peer_delay: table
            .get("peer-delay")
            .map_or(Ok(Duration::ZERO), |value| value.read(units::duration))?,
        peer_link: table.get("peer-link").map(|value| value.read(units::link)).transpose()?,
        proxy_only: flag("proxy-only")?,
        never_direct: flag("never-direct")?,
        robots: table.get("robots").map(|value| share(&value)).transpose()?,
        line: table.line(),
    })
}

/// Refuses names that no cache has.
fn names(table: &Fields<'_>, key: &str, all: &[CacheChoice]) -> Result<(), Mistake> {
    let Some(list) = table.get(key) else { return Ok(()) };
    for value in list.list()? {
        let named = value.text()?;
        if !all.iter().any(|cache| cache.name == named) {
            let known: Vec<&str> = all.iter().map(|cache| cache.name.as_str()).collect();
            let meant = nearest(named, known.iter().copied()).map_or_else(
                || format!("the caches are: {}", known.join(", ")),
                |near| format!("did you mean `{near}`?"),
            );
            return Err(value.wrong(&format!("no cache is called `{named}`; {meant}")));
        }
    }
    Ok(())
}

fn settings(table: &Fields<'_>) -> Result<BTreeMap<String, String>, Mistake> {
    let Some(set) = table.get("set") else { return Ok(BTreeMap::new()) };
    set.fields("set")?.all().into_iter().map(|value| Ok((value.key.clone(), value.plain()?))).collect()
}

/// A protocol between caches that there is not.
#[derive(Debug, thiserror::Error)]
#[error("`{text}` is none of {}", PeerProtocol::VARIANTS.iter().map(|known| format!("\"{}\"", known.name())).collect::<Vec<_>>().join(", "))]
struct UnknownProtocol {
    text: String,
}

fn protocol(text: &str) -> Result<PeerProtocol, UnknownProtocol> {
    text.parse().map_err(|_| UnknownProtocol { text: text.to_owned() })
}

/// A weight, or groups of robots.
fn share(value: &Value<'_>) -> Result<Share, Mistake> {
    match value.list()?.first().map(|first| first.text()) {
        Some(Ok(_)) => {
            let names: Result<Vec<String>, _> =
                value.list()?.iter().map(|name| Ok(name.text()?.to_owned())).collect();
            names.map(Share::Groups)
        }
        // Nothing is below 0, and 0 is none.
        _ => value.number(-f64::MIN_POSITIVE, 1e6).map(Share::Weight).map_err(|_| {
            value.wrong("write a weight, like 1 or 0.5 (0: none), or groups of robots, like [\"Left\"]")
        }),
    }
}
