//! Shared memory that a proxy was killed before it could remove.
//!
//! Squid keeps named segments below `/dev/shm`, called after its instance; they outlive it when it is killed, and take memory until
//! the machine is started again. The name of an instance is made of that of its work directory, so the segments of one can be told
//! from all others.

use std::path::Path;

/// Directory of named segments.
const SEGMENTS: &str = "/dev/shm";
/// The longest name of an instance (Squid takes no longer one), and what a shortened one begins with.
const INSTANCE_LETTERS: usize = 32;
const INSTANCE_PREFIX: &str = "assay";

/// Removes the segments of the instance that works, or has worked, in this directory.
pub fn remove(work: &Path) {
    remove_in(Path::new(SEGMENTS), &instance(work));
}

/// A name that no other instance has: the work directory's is one already, and its end tells it from others.
pub(crate) fn instance(work: &Path) -> String {
    let name = work.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let letters: Vec<char> = name.chars().filter(char::is_ascii_alphanumeric).collect();
    if letters.len() <= INSTANCE_LETTERS {
        return letters.into_iter().collect();
    }
    let end = &letters[letters.len() - (INSTANCE_LETTERS - INSTANCE_PREFIX.len())..];
    INSTANCE_PREFIX.chars().chain(end.iter().copied()).collect()
}

/// A segment of that instance.
#[cfg(test)]
pub(crate) fn segment(work: &Path, name: &str) -> std::path::PathBuf {
    Path::new(SEGMENTS).join(format!("{}-{name}.shm", instance(work)))
}

fn remove_in(segments: &Path, instance: &str) {
    let prefix = format!("{instance}-");
    for entry in std::fs::read_dir(segments).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_its = name.to_str().is_some_and(|name| name.starts_with(&prefix) && name.ends_with(".shm"));
        if is_its && entry.file_type().is_ok_and(|kind| kind.is_file()) {
            // What cannot be removed is another user's.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_segments_of_one_instance_go_and_all_others_stay() {
        let segments = tempfile::tempdir().expect("a folder");
        let file = |name: &str| segments.path().join(name);
        for name in
            ["assaya-cf__metadata.shm", "assaya-cf__queues.shm", "assayab-cf__x.shm", "assaya-x", "sem.a"]
        {
            std::fs::write(file(name), "x").expect("a folder of its own");
        }
        std::fs::create_dir(file("assaya-d.shm")).expect("a folder of its own");
        remove_in(segments.path(), "assaya");
        assert!(!file("assaya-cf__metadata.shm").exists() && !file("assaya-cf__queues.shm").exists());
        for name in ["assayab-cf__x.shm", "assaya-x", "sem.a", "assaya-d.shm"] {
            assert!(file(name).exists(), "{name}");
        }
        remove_in(&file("nowhere"), "assaya");
    }

    #[test]
    fn an_instance_is_named_with_letters_and_digits() {
        assert_eq!(instance(Path::new("/tmp/assay-squid-aB3.x")), "assaysquidaB3x");
        let long = instance(Path::new("/tmp/assay-squid-m1763_2792960_4026531836-jASqoY"));
        assert!(
            long.len() == 32 && long.starts_with("assay") && long.ends_with("4026531836jASqoY"),
            "{long}"
        );
    }
}
