//! Model of a proxy's cache, from its description: its behaviour, and the room that an object takes.

use std::path::PathBuf;

use anyhow::anyhow;
use assay_cache::behaviour::CacheBehaviour;
use assay_lab::Description;
use assay_lab::description::Store;
use assay_logs::size::document::StoredAs;
use assay_logs::size::http::USUAL;
use assay_logs::size::layout::Layout;

use crate::exit::Failure;

const BUILTIN: &str = "builtin";
/// Measured overhead of an object in the built-in proxy's store, beside its body.
const BUILTIN_OVERHEAD_BYTES: u64 = 914;
/// Memory of a proxy whose cache is on disk, for its keys.
const FOR_KEYS_BYTES: u64 = 256 << 20;

/// The name is that of the built-in proxy.
pub fn is_builtin(name: &str) -> bool {
    matches!(name, BUILTIN | "built-in")
}

/// A proxy as simulations see it.
#[derive(Debug)]
pub struct CacheModel {
    pub name: String,
    /// Room for objects.
    pub layout: Layout,
    /// Behaviour where RFC 9111 leaves a cache a choice.
    pub behaviour: CacheBehaviour,
    /// Memory that it is given beside its disk; none: its cache is in memory.
    beside_disk_bytes: Option<u64>,
}

impl CacheModel {
    /// A cache that needs no room beside bodies.
    pub fn plain() -> Self {
        Self {
            name: "a plain cache".into(),
            layout: Layout::BODIES,
            behaviour: USUAL,
            beside_disk_bytes: None,
        }
    }

    /// A proxy by its name, or the file of its description.
    pub fn from_description(name: &str, directories: &[PathBuf]) -> Result<Self, Failure> {
        if is_builtin(name) {
            return Ok(Self {
                name: BUILTIN.into(),
                layout: Layout { overhead_bytes: BUILTIN_OVERHEAD_BYTES, ..Layout::BODIES },
                behaviour: assay_proxy::spec::BEHAVIOUR,
                beside_disk_bytes: None,
            });
        }
        if name == "direct" {
            return Err(
                Failure::usage(anyhow!("`direct` is no cache")).hint("name a proxy that stores responses")
            );
        }
        let Description { capacity, behaviour: declared, .. } =
            assay_lab::find(name, directories).map_err(Failure::usage)?;
        let is_on_disk = capacity.inclusive || capacity.first_store() == Store::Disk;
        // A store in memory that may hold more than the one on disk would be the cache.
        let has_memory = capacity.stores.contains(&Store::Memory);
        let beside_disk_bytes = if has_memory { capacity.memory_floor_bytes } else { FOR_KEYS_BYTES };
        Ok(Self {
            name: name.into(),
            layout: Layout {
                overhead_bytes: capacity.object_overhead_bytes,
                unit_bytes: capacity.object_unit_bytes,
                filled_percent: capacity.evicts_from_percent,
            },
            behaviour: declared,
            beside_disk_bytes: is_on_disk.then_some(beside_disk_bytes),
        })
    }

    pub fn is_builtin(&self) -> bool {
        is_builtin(&self.name)
    }

    /// The same with objects that need no room beside their bodies.
    #[must_use]
    pub fn without_overhead(self) -> Self {
        Self { layout: Layout::BODIES, ..self }
    }

    /// Memory and disk with which its cache has so many bytes.
    pub fn stores(&self, size_bytes: u64) -> (u64, u64) {
        self.beside_disk_bytes.map_or((size_bytes, 0), |memory_bytes| (memory_bytes, size_bytes))
    }

    /// Form of the note that objects were stored as in this model.
    pub fn stored_as(&self) -> StoredAs {
        let Layout { overhead_bytes, unit_bytes, filled_percent } = self.layout;
        StoredAs { proxy: self.name.clone(), overhead_bytes, unit_bytes, filled_percent }
    }
}
