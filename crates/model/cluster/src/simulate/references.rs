//! Parses a `[[reference]]` of a cluster file: measured rates, and measured utilisation of a node.

use assay_base::settings::{Fields, Mistake};

use crate::dispatch::ServerId;
use crate::simulate::experiment::{ReferenceCurve, ReferenceNode};

/// Fields of a reference.
pub(crate) const KNOWN: [&str; 8] =
    ["mix", "cluster", "policy", "clients", "per-second", "node", "processor", "disk"];
/// The most nodes that a cluster may have.
const MOST_NODES: u64 = 1_000_000;

/// Parses a reference.
pub(crate) fn read(fields: &Fields<'_>) -> Result<ReferenceCurve, Mistake> {
    let text = |key: &str| Ok(fields.need(key, "the label of one")?.text()?.to_owned());
    let clients = fields.need("clients", "a list")?;
    let counts: Vec<u32> =
        clients.list()?.iter().map(|value| Ok(value.whole(1, 1 << 31)? as u32)).collect::<Result<_, _>>()?;
    let rates = numbers(fields, "per-second", 1e12, counts.len())?;
    let processor = numbers(fields, "processor", 1.0, counts.len())?;
    let disk = numbers(fields, "disk", 1.0, counts.len())?;
    let is_of_node = processor.is_some() || disk.is_some();
    let node = match fields.get("node") {
        Some(value) if !is_of_node => {
            return Err(
                value.wrong("nothing is said of it: add processor = […] or disk = […], shares from 0 to 1")
            );
        }
        Some(value) => Some(ServerId(value.whole(0, MOST_NODES)? as u32)),
        None if is_of_node => return Err(fields.wrong("it does not say which node: add node = 0")),
        None if rates.is_none() => return Err(fields.wrong("nothing was measured: add per-second = […]")),
        None => None,
    };
    let at = |list: &Option<Vec<f64>>, index: usize| list.as_ref().map(|values| values[index]);
    let mut nodes = Vec::new();
    if let Some(node) = node {
        for (index, count) in counts.iter().enumerate() {
            let (processor, disk) = (at(&processor, index), at(&disk, index));
            nodes.push((*count, ReferenceNode { node, processor, disk }));
        }
    }
    Ok(ReferenceCurve {
        mix: text("mix")?,
        cluster: text("cluster")?,
        policy: text("policy")?,
        points: counts.iter().copied().zip(rates.into_iter().flatten()).collect(),
        nodes,
    })
}

/// A list with a value for each number of clients.
fn numbers(fields: &Fields<'_>, key: &str, most: f64, clients: usize) -> Result<Option<Vec<f64>>, Mistake> {
    let Some(value) = fields.get(key) else { return Ok(None) };
    let all: Vec<f64> =
        value.list()?.iter().map(|value| value.number(0.0, most)).collect::<Result<_, _>>()?;
    if all.len() != clients {
        return Err(value.wrong(&format!("{} values for {clients} numbers of clients", all.len())));
    }
    Ok(Some(all))
}
