//! The cells of an experiment, and the order in which they run.
//!
//! Each repetition is a complete block: every workload, subject and condition once, shuffled anew from the seed. So
//! whatever drifts while an experiment goes on (a machine that gets warm, a disk that fills) falls on all subjects
//! alike.

use std::collections::HashSet;

use assay_base::random::{Rng, shuffle};
use assay_record::experiment::{CellInfo, CellState, EXPERIMENT_SCHEMA, ExperimentInfo};

use super::Experiment;

/// The cells of an experiment, in the order in which they run.
pub fn cells(experiment: &Experiment) -> Vec<CellInfo> {
    let mut all = Vec::new();
    let mut names = HashSet::new();
    for repetition in 1..=experiment.repetitions {
        let mut block = block(experiment, repetition);
        let mut rng = Rng::new(experiment.seed ^ (u64::from(repetition) << 32));
        // The bias of a remainder is below one part in 2^50 for as many cells as there can be.
        shuffle(&mut block, |n| rng.next_u64() % n);
        for cell in &mut block {
            cell.id = fresh(&cell.id, &mut names);
        }
        all.append(&mut block);
    }
    all
}

/// The head of an experiment that has not begun.
pub fn info(experiment: &Experiment) -> ExperimentInfo {
    ExperimentInfo {
        schema: EXPERIMENT_SCHEMA.into(),
        name: experiment.name.clone(),
        title: experiment.title.clone(),
        seed: experiment.seed,
        rehearse_s: experiment.rehearse.map(|length| length.as_secs_f64()),
        repetitions: experiment.repetitions,
        workloads: experiment.workloads.iter().map(|workload| workload.label.clone()).collect(),
        subjects: experiment.subjects.iter().map(super::Subject::info).collect(),
        conditions: experiment.conditions.iter().map(super::Condition::info).collect(),
        cells: cells(experiment),
        ..ExperimentInfo::default()
    }
}

/// One repetition, in the order of the file.
fn block(experiment: &Experiment, repetition: u32) -> Vec<CellInfo> {
    let mut block = Vec::new();
    for workload in &experiment.workloads {
        for subject in &experiment.subjects {
            for condition in &experiment.conditions {
                let mut parts = vec![format!("r{repetition}"), plain(&workload.label), plain(&subject.label)];
                if experiment.conditions.len() > 1 {
                    parts.push(plain(&condition.label));
                }
                block.push(CellInfo {
                    id: parts.join("-"),
                    workload: workload.label.clone(),
                    subject: subject.label.clone(),
                    condition: condition.label.clone(),
                    repetition,
                    seed: experiment.seed.wrapping_add(u64::from(repetition) - 1),
                    state: CellState::Waiting,
                    ..CellInfo::default()
                });
            }
        }
    }
    block
}

/// A name as that of a directory: small letters and digits, with single `-` between them.
fn plain(label: &str) -> String {
    let words = label.split(|c: char| !c.is_ascii_alphanumeric() && c != '.' && c != '_');
    let words: Vec<String> = words.filter(|word| !word.is_empty()).map(str::to_ascii_lowercase).collect();
    words.join("-").trim_start_matches(['.', '-']).chars().take(60).collect()
}

/// The name, or one like it that is not taken.
fn fresh(name: &str, taken: &mut HashSet<String>) -> String {
    let more = (2..).map(|number| format!("{name}-{number}"));
    let free = std::iter::once(name.to_owned()).chain(more).find(|name| !taken.contains(name));
    let free = free.unwrap_or_else(|| name.to_owned());
    taken.insert(free.clone());
    free
}

/// The seed of a cell's world: the same paths for all subjects of a repetition.
pub fn world(seed: u64) -> u32 {
    let mixed = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 32) as u32
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn experiment(seed: u64) -> Experiment {
        let text = format!(
            "seed = {seed}\nrepetitions = 3\nworkloads = [\"demo\", \"image\"]\n[[proxy]]\nname = \"builtin\"\n\
             memory = [\"64MB\", \"128MB\"]\n[[proxy]]\nname = \"direct\"\n"
        );
        Experiment::read("x.toml", "x", &text).unwrap()
    }

    #[test]
    fn each_repetition_is_a_complete_block_with_one_seed() {
        let cells = cells(&experiment(7));
        assert_eq!(cells.len(), 18);
        for (index, block) in cells.chunks(6).enumerate() {
            let kinds: BTreeSet<_> = block.iter().map(|cell| (&cell.workload, &cell.subject)).collect();
            assert_eq!(kinds.len(), 6);
            assert!(block.iter().all(|cell| cell.repetition == index as u32 + 1));
            assert!(block.iter().all(|cell| cell.seed == 7 + index as u64));
        }
        let names: BTreeSet<_> = cells.iter().map(|cell| &cell.id).collect();
        assert_eq!(names.len(), 18, "{names:?}");
    }

    #[test]
    fn the_order_follows_from_the_seed_and_differs_between_repetitions() {
        let kinds = |seed| -> Vec<(String, String)> {
            cells(&experiment(seed)).into_iter().map(|cell| (cell.workload, cell.subject)).collect()
        };
        assert_eq!(kinds(7), kinds(7));
        assert_ne!(kinds(7), kinds(8));
        assert_ne!(kinds(7)[..6], kinds(7)[6..12]);
    }

    #[test]
    fn names_are_good_names_of_directories() {
        assert_eq!(plain("Varnish, 1 GB file (-t 0)"), "varnish-1-gb-file-t-0");
        assert_eq!(plain("../x"), "x");
        assert_eq!(plain("mine.pg"), "mine.pg");
        let mut taken = HashSet::new();
        assert_eq!(
            [fresh("a", &mut taken), fresh("a", &mut taken), fresh("a", &mut taken)],
            ["a", "a-2", "a-3"]
        );
    }

    #[test]
    fn each_seed_has_a_world_of_its_own() {
        let worlds: BTreeSet<u32> = (0..1000).map(world).collect();
        assert_eq!(worlds.len(), 1000);
    }
}
