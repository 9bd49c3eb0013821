//! Data that takes long to make and is the same each time: made by the first test of a binary that needs it, cached in a file, and read by
//! the others, each of which may be a process of its own.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::path::Path;

/// Result of `make`, made once by each build of this program. It is kept under `name` in `place`, which is for the package of the program
/// alone.
pub fn cached(place: &Path, name: &str, make: impl FnOnce() -> Vec<u8>) -> Vec<u8> {
    let program = std::env::current_exe().expect("this program has a path");
    cached_for(&program, place, name, make)
}

fn cached_for(program: &Path, place: &Path, name: &str, make: impl FnOnce() -> Vec<u8>) -> Vec<u8> {
    let (own, all) = directory(program).expect("this program is a file");
    if let Ok(kept) = std::fs::read(place.join(&own).join(name)) {
        return kept;
    }
    let made = make();
    // Two that make it at the same time make the same. If it cannot be kept, or another build of this program removes
    // it meanwhile, it is made again.
    let _ = keep(place, &own, &all, name, &made);
    made
}

/// The name of the directory of a program, and how those of all its builds begin.
fn directory(program: &Path) -> io::Result<(String, String)> {
    let about = program.metadata()?;
    let mut hasher = DefaultHasher::new();
    (program, about.modified()?, about.len()).hash(&mut hasher);
    let name = program.file_stem().unwrap_or_default().to_string_lossy();
    // Cargo ends names of programs with a number.
    let all = format!("{}-", name.rsplit_once('-').map_or(&*name, |(name, _)| name));
    Ok((format!("{all}{:016x}", hasher.finish()), all))
}

/// Keeps `bytes`, and removes what other builds made.
fn keep(place: &Path, own: &str, all: &str, name: &str, bytes: &[u8]) -> io::Result<()> {
    let directory = place.join(own);
    std::fs::create_dir_all(&directory)?;
    for other in std::fs::read_dir(place)?.flatten() {
        let other_name = other.file_name();
        if other_name.to_string_lossy().starts_with(all) && other_name != own {
            // Another test may be removing it too.
            let _ = std::fs::remove_dir_all(other.path());
        }
    }
    // Whoever finds the file finds all of it.
    let mut file = tempfile::NamedTempFile::new_in(&directory)?;
    file.write_all(bytes)?;
    file.persist(directory.join(name))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_makes_a_thing_once_and_the_next_one_makes_it_again_and_removes_the_old_one() {
        let tmp = tempfile::tempdir().expect("a temporary directory");
        let (place, program) = (tmp.path().join("made"), tmp.path().join("it-0123456789abcdef"));
        let other = tmp.path().join("real-0123456789abcdef");
        std::fs::write(&program, "one").expect("a directory of its own");
        std::fs::write(&other, "one").expect("a directory of its own");
        let made = |program: &Path, name: &str, bytes: &str| {
            let bytes = cached_for(program, &place, name, || bytes.into());
            String::from_utf8(bytes).expect("is text")
        };
        assert_eq!(made(&program, "a", "first"), "first");
        assert_eq!(made(&program, "a", "second"), "first");
        assert_eq!(made(&program, "b", "of another name"), "of another name");
        assert_eq!(made(&other, "a", "of another program"), "of another program");
        std::fs::write(&program, "another").expect("a directory of its own");
        assert_eq!(made(&program, "a", "third"), "third");
        assert_eq!(made(&program, "a", "fourth"), "third");
        assert_eq!(made(&other, "a", "again"), "of another program");
        let kept = std::fs::read_dir(&place).expect("is there").count();
        assert_eq!(kept, 2, "one of each program");
    }
}
