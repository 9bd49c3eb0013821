//! Stores of a proxy, and the sizes that they accept.

use serde::Deserialize;
use strum::IntoStaticStr;

use super::{Description, SettingUnit};

/// A place where objects are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
#[serde(rename_all = "kebab-case")]
pub enum Store {
    Memory,
    Disk,
}

impl Store {
    /// As a description spells it.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// A size that a proxy's stores do not accept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CapacityError {
    #[error(
        "{title} cannot work with --{store} {given}{}; give it {bound} --{store} {needed}",
        if *is_only_store { ", where it keeps everything" } else { "" },
        store = store.name()
    )]
    OutOfBounds {
        title: String,
        store: Store,
        given: String,
        /// `at least` or `at most`.
        bound: &'static str,
        needed: String,
        is_only_store: bool,
    },
    #[error("{title} takes disk in multiples of {step}, and --disk is {given}; give it --disk {next}")]
    NotAMultiple { title: String, step: String, given: String, next: String },
}

/// Sizes that a proxy's stores accept.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Capacity {
    /// Stores that it has, of `--memory` and `--disk`.
    pub stores: Vec<Store>,
    /// Least memory that it can be given, in bytes.
    pub memory_floor_bytes: u64,
    /// Most memory that it can be given, in bytes; none: any.
    pub memory_ceiling_bytes: Option<u64>,
    /// Least disk that it can be given, in bytes (0 is "no disk store" when there is one in memory, unless it needs one).
    pub disk_floor_bytes: u64,
    /// Disk is given to it in multiples of this many bytes.
    pub disk_step_bytes: u64,
    /// Whether it has no cache without a disk store.
    pub needs_disk: bool,
    /// Overhead of an object beside its body, in bytes: measured, for predictions of hit ratios.
    pub object_overhead_bytes: u64,
    /// An object, with that, takes a multiple of so many bytes.
    pub object_unit_bytes: u64,
    /// Share of its size from which on it evicts, in percent, measured.
    pub evicts_from_percent: u64,
    /// Whether objects in memory are on disk too: with a disk store, the disk is all there is room for.
    pub inclusive: bool,
}

impl Default for Capacity {
    fn default() -> Self {
        Self {
            stores: vec![Store::Memory, Store::Disk],
            memory_floor_bytes: 0,
            memory_ceiling_bytes: None,
            disk_floor_bytes: 0,
            disk_step_bytes: 1,
            needs_disk: false,
            object_overhead_bytes: 0,
            object_unit_bytes: 1,
            evicts_from_percent: 100,
            inclusive: false,
        }
    }
}

impl Capacity {
    fn has(&self, store: Store) -> bool {
        self.stores.contains(&store)
    }

    /// The store that holds what it caches, if it is given one only.
    pub fn first_store(&self) -> Store {
        if self.has(Store::Memory) && !self.needs_disk { Store::Memory } else { Store::Disk }
    }

    /// Checks it; the error is the field, and what is wrong with it.
    pub(super) fn check(&self) -> Result<(), (&'static str, String)> {
        if self.stores.is_empty() {
            return Err(("stores", "must name at least one of \"memory\" and \"disk\"".into()));
        }
        if self.disk_step_bytes == 0 {
            return Err(("disk-step-bytes", "must be at least 1".into()));
        }
        if self.object_unit_bytes == 0 {
            return Err(("object-unit-bytes", "must be at least 1".into()));
        }
        if !(1..=100).contains(&self.evicts_from_percent) {
            return Err(("evicts-from-percent", "must be from 1 to 100".into()));
        }
        if self.memory_ceiling_bytes.is_some_and(|most| most < self.memory_floor_bytes) {
            return Err(("memory-ceiling-bytes", "must not be below `memory-floor-bytes`".into()));
        }
        if self.needs_disk && !self.has(Store::Disk) {
            return Err(("needs-disk", "goes with a store on \"disk\" in `stores`".into()));
        }
        Ok(())
    }
}

impl Description {
    /// Checks that its stores accept what `--memory` and `--disk` would give them; the message, if not.
    pub fn check_capacity(&self, memory_bytes: u64, disk_bytes: u64) -> Result<(), CapacityError> {
        let capacity = &self.capacity;
        let refuse = |store, given: u64, bound, needed: u64| {
            Err(CapacityError::OutOfBounds {
                title: self.title.clone(),
                store,
                given: SettingUnit::Bytes.typed(given),
                bound,
                needed: SettingUnit::Bytes.typed(needed),
                is_only_store: store == Store::Disk && (!capacity.has(Store::Memory) || capacity.needs_disk),
            })
        };
        // Without a store in memory too: it may be given its keys there.
        if memory_bytes < capacity.memory_floor_bytes {
            return refuse(Store::Memory, memory_bytes, "at least", capacity.memory_floor_bytes);
        }
        if let Some(most) = capacity.memory_ceiling_bytes.filter(|most| memory_bytes > *most) {
            return refuse(Store::Memory, memory_bytes, "at most", most);
        }
        let without_disk = capacity.has(Store::Memory) && !capacity.needs_disk;
        if !capacity.has(Store::Disk) || (disk_bytes == 0 && without_disk) {
            return Ok(());
        }
        if disk_bytes < capacity.disk_floor_bytes {
            return refuse(Store::Disk, disk_bytes, "at least", capacity.disk_floor_bytes);
        }
        let step = capacity.disk_step_bytes;
        if !disk_bytes.is_multiple_of(step) {
            return Err(CapacityError::NotAMultiple {
                title: self.title.clone(),
                step: SettingUnit::Bytes.typed(step),
                given: SettingUnit::Bytes.typed(disk_bytes),
                next: SettingUnit::Bytes.typed((disk_bytes / step).saturating_add(1).saturating_mul(step)),
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn toy(capacity: &str) -> Result<Description, String> {
        let text = format!(
            "name = \"toy\"\ntitle = \"Toy\"\nmodes = [\"reverse\"]\n[version]\ncommand = [\"toy\"]\nafter = \"\"\n\
             [start]\ncommand = [\"toy\"]\n[capacity]\n{capacity}"
        );
        Description::read("toy.toml", &text).map_err(|error| error.message)
    }

    #[test]
    fn capacities_out_of_bounds_or_between_steps_are_refused_with_a_number_to_use() {
        let toy = toy("memory-floor-bytes = 1024\nmemory-ceiling-bytes = 4096\ndisk-step-bytes = 1048576\n")
            .unwrap();
        assert_eq!(toy.check_capacity(1024, 0), Ok(()));
        assert_eq!(toy.check_capacity(4096, 1 << 20), Ok(()));
        assert!(toy.check_capacity(1023, 0).unwrap_err().to_string().contains("at least --memory 1KB"));
        assert!(toy.check_capacity(8192, 0).unwrap_err().to_string().contains("at most --memory 4KB"));
        assert!(toy.check_capacity(1024, 1_048_577).unwrap_err().to_string().contains("give it --disk 2MB"));
    }

    #[test]
    fn what_needs_a_disk_is_not_run_without() {
        let needs = toy("needs-disk = true\ndisk-floor-bytes = 1024\n").unwrap();
        assert!(
            needs
                .check_capacity(1, 0)
                .unwrap_err()
                .to_string()
                .contains("everything; give it at least --disk 1KB")
        );
        let only = toy("stores = [\"disk\"]\ndisk-floor-bytes = 1024\n").unwrap();
        assert!(only.check_capacity(1, 0).is_err());
        assert_eq!(toy("stores = [\"memory\"]").unwrap().check_capacity(1, 0), Ok(()));
    }

    #[test]
    fn capacities_that_cannot_be_are_refused() {
        assert!(toy("stores = []").unwrap_err().to_string().starts_with("toy.toml:10: capacity.stores: "));
        assert!(toy("disk-step-bytes = 0").unwrap_err().to_string().contains("must be at least 1"));
        assert!(toy("evicts-from-percent = 0").unwrap_err().to_string().contains("must be from 1 to 100"));
        let upside_down = toy("memory-floor-bytes = 2\nmemory-ceiling-bytes = 1").unwrap_err();
        assert!(upside_down.starts_with("toy.toml:11: capacity.memory-ceiling-bytes: "), "{upside_down}");
        assert!(
            toy("stores = [\"memory\"]\nneeds-disk = true").unwrap_err().to_string().contains("goes with")
        );
    }
}
