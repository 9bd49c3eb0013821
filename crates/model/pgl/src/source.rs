//! Source texts, positions in them, and the way to the files that a workload names.
//!
//! The compiler opens no file. It calls a [`Resolver`]; [`SearchPath`] is the usual one, and is itself given
//! the [`Files`] it searches: a file system, or a function from paths to texts.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use assay_workload::model::{FileEntry, FileSet};

/// Character that [`Files::text`] puts in place of bytes that are not UTF-8. Old files have names in other encodings in
/// their comments, so it is accepted there; anywhere else it is an error.
pub const REPLACEMENT: char = char::REPLACEMENT_CHARACTER;

/// A source text of a compilation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Name as given on the command line or in `#include`, or `<bundled>/name`.
    pub name: String,
    pub text: String,
    /// The `#include` of this source; none for the main file.
    pub included_from: Option<Span>,
}

impl Source {
    /// Line and column (from 1, the column in characters) of a byte offset.
    pub fn position(&self, offset: usize) -> (usize, usize) {
        let mut offset = offset.min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        let before = &self.text[..offset];
        let line = before.bytes().filter(|b| *b == b'\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        (line, before[start..].chars().count() + 1)
    }

    /// The line (from 1) without its end, and its byte offset.
    pub fn line(&self, number: usize) -> (&str, usize) {
        let mut start = 0;
        for (index, line) in self.text.split('\n').enumerate() {
            if index + 1 == number {
                return (line.strip_suffix('\r').unwrap_or(line), start);
            }
            start += line.len() + 1;
        }
        ("", self.text.len())
    }
}

/// Bytes `start..end` of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Span {
    /// Index into the sources of the compilation.
    pub source: u32,
    pub start: u32,
    pub end: u32,
}

impl Span {
    /// From the start of this span to the end of `last`; this span alone if they are in different sources.
    pub fn to(self, last: Span) -> Span {
        if self.source == last.source && last.end >= self.start {
            Span { end: last.end.max(self.end), ..self }
        } else {
            self
        }
    }

    /// The empty span at the end of this one.
    pub fn after(self) -> Span {
        Span { start: self.end, ..self }
    }
}

/// A source text that a resolver found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedSource {
    /// Name in messages.
    pub name: String,
    pub text: String,
}

/// Files that bodies are made of, as a resolver found them.
#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedFiles {
    /// The files that are not empty, with lengths and digests.
    pub set: FileSet,
    /// Beginning of the first file, at most [`ResolvedFiles::START`] bytes.
    pub start: Vec<u8>,
}

impl ResolvedFiles {
    /// Upper bound, in bytes, on `start`.
    pub const START: usize = 64;
}

/// A file that exists and cannot be read.
#[derive(Debug, Clone, thiserror::Error)]
pub enum FileError {
    #[error(transparent)]
    Io(#[from] Arc<io::Error>),
    #[error("it is gone")]
    Gone,
    #[error("it holds more than {0} files")]
    TooManyFiles(usize),
}

impl From<io::Error> for FileError {
    fn from(error: io::Error) -> Self {
        Self::Io(Arc::new(error))
    }
}

/// A name for which a resolver has no text or files.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ResolveError {
    /// The paths that were tried.
    #[error("no such file: {}", .0.join(", "))]
    NoFile(Vec<String>),
    /// The paths that were tried.
    #[error("no such file or directory: {}", .0.join(", "))]
    NoFileOrDirectory(Vec<String>),
    #[error("cannot read {path}: {error}")]
    Unreadable { path: String, error: FileError },
    #[error("{0} is not looked for: only texts can be read here")]
    TextsOnly(String),
}

/// Access of the compiler to files.
pub trait Resolver {
    /// Finds the text `name`, included by the file `including` (its resolved name); `including` is none for the main file.
    fn read(&self, name: &str, including: Option<&str>) -> Result<ResolvedSource, ResolveError>;

    /// Finds the file or directory `name`, named in the file `including`, and lists the files in it.
    fn files(&self, name: &str, _including: Option<&str>) -> Result<ResolvedFiles, ResolveError> {
        Err(ResolveError::TextsOnly(name.to_owned()))
    }
}

/// The files below a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// Absolute path of the directory, or of the file itself.
    pub root: PathBuf,
    /// Paths of regular files relative to the root, sorted; one empty path if the root is a file.
    pub files: Vec<PathBuf>,
}

/// A file system, as far as [`SearchPath`] needs one.
pub trait Files {
    /// The text of a file, with [`REPLACEMENT`] for bytes that are not UTF-8; none if there is no such file.
    fn text(&self, path: &str) -> Result<Option<String>, FileError>;

    /// Lists a file or directory; none if there is neither.
    fn list(&self, path: &str) -> Result<Option<Listing>, FileError>;

    fn bytes(&self, path: &Path) -> Result<Vec<u8>, FileError>;
}

/// A file system without directories: a function from paths to texts.
pub struct TextFiles<F>(F);

impl<F: Fn(&str) -> Option<String>> Files for TextFiles<F> {
    fn text(&self, path: &str) -> Result<Option<String>, FileError> {
        Ok((self.0)(path))
    }

    fn list(&self, path: &str) -> Result<Option<Listing>, FileError> {
        let listing = |_| Listing { root: PathBuf::from(path), files: vec![PathBuf::new()] };
        Ok((self.0)(path).map(listing))
    }

    fn bytes(&self, path: &Path) -> Result<Vec<u8>, FileError> {
        (self.0)(&path.to_string_lossy()).map(String::into_bytes).ok_or(FileError::Gone)
    }
}

/// Files for inclusion that are part of the compiler, by base name.
const BUNDLED: [(&str, &str); 4] = [
    ("benches.pg", include_str!("../bundled/benches.pg")),
    ("contents.pg", include_str!("../bundled/contents.pg")),
    ("phases.pg", include_str!("../bundled/phases.pg")),
    ("pipes.pg", include_str!("../bundled/pipes.pg")),
];

/// A bundled file, by base name.
pub fn bundled(base_name: &str) -> Option<&'static str> {
    BUNDLED.iter().find(|(name, _)| *name == base_name).map(|(_, text)| *text)
}

pub fn bundled_names() -> impl Iterator<Item = &'static str> {
    BUNDLED.iter().map(|(name, _)| *name)
}

/// Resolver that looks for a file under its name as given, then beside the file that includes it, then in directories,
/// and at last among the bundled files.
pub struct SearchPath<F> {
    directories: Vec<String>,
    files: F,
}

impl<F: Fn(&str) -> Option<String>> SearchPath<TextFiles<F>> {
    /// Searches `directories` in order, with `read` as the file system.
    pub fn from_fn(directories: Vec<String>, read: F) -> Self {
        Self { directories, files: TextFiles(read) }
    }
}

impl<F: Files> SearchPath<F> {
    /// Searches `directories` (of `-I`) in order.
    pub fn new(directories: Vec<String>, files: F) -> Self {
        Self { directories, files }
    }

    /// The distinct paths to try, in order.
    fn candidates(&self, name: &str, including: Option<&str>) -> Vec<String> {
        let mut paths = vec![name.to_owned()];
        let mut add = |path: String| {
            if !paths.contains(&path) {
                paths.push(path);
            }
        };
        if name == "-" || including.is_none() {
            return paths;
        }
        if let Some((directory, _)) = including.and_then(|file| file.rsplit_once('/'))
            && !name.starts_with('/')
        {
            add(format!("{directory}/{name}"));
        }
        for directory in &self.directories {
            let directory = directory.trim_end_matches('/');
            if !name.starts_with('/') {
                add(format!("{directory}/{name}"));
            }
            add(format!("{directory}/{}", base_name(name)));
        }
        paths
    }
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

impl<F: Files> Resolver for SearchPath<F> {
    fn read(&self, name: &str, including: Option<&str>) -> Result<ResolvedSource, ResolveError> {
        let candidates = self.candidates(name, including);
        for path in &candidates {
            match self.files.text(path) {
                Ok(Some(text)) => return Ok(ResolvedSource { name: path.clone(), text }),
                Ok(None) => {}
                Err(error) => return Err(ResolveError::Unreadable { path: path.clone(), error }),
            }
        }
        if including.is_some()
            && let Some(text) = bundled(base_name(name))
        {
            let name = format!("<bundled>/{}", base_name(name));
            return Ok(ResolvedSource { name, text: text.to_owned() });
        }
        Err(ResolveError::NoFile(candidates))
    }

    fn files(&self, name: &str, including: Option<&str>) -> Result<ResolvedFiles, ResolveError> {
        let candidates = self.candidates(name, including);
        for path in &candidates {
            match self.files.list(path) {
                Ok(Some(listing)) => return self.read_all(listing),
                Ok(None) => {}
                Err(error) => return Err(ResolveError::Unreadable { path: path.clone(), error }),
            }
        }
        Err(ResolveError::NoFileOrDirectory(candidates))
    }
}

impl<F: Files> SearchPath<F> {
    /// Reads the files of a listing, for their lengths and digests.
    fn read_all(&self, listing: Listing) -> Result<ResolvedFiles, ResolveError> {
        let mut set = FileSet { root: listing.root, files: Vec::with_capacity(listing.files.len()) };
        let mut start = Vec::new();
        for path in listing.files {
            let full_path = if path.as_os_str().is_empty() { set.root.clone() } else { set.root.join(&path) };
            let bytes = self
                .files
                .bytes(&full_path)
                .map_err(|error| ResolveError::Unreadable { path: full_path.display().to_string(), error })?;
            if bytes.is_empty() {
                continue;
            }
            if set.files.is_empty() {
                start = bytes[..bytes.len().min(ResolvedFiles::START)].to_vec();
            }
            let digest = FileEntry::digest_of(&bytes);
            set.files.push(FileEntry { path, bytes: bytes.len() as u64, digest });
        }
        Ok(ResolvedFiles { set, start })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn path(files: &[(&str, &str)], directories: &[&str]) -> impl Resolver + use<> {
        let files: HashMap<String, String> = files.iter().map(|(n, t)| ((*n).into(), (*t).into())).collect();
        SearchPath::from_fn(directories.iter().map(|d| (*d).to_owned()).collect(), move |name| {
            files.get(name).cloned()
        })
    }

    #[test]
    fn the_name_as_given_comes_first_then_directories_then_the_bundled_file() {
        let name = "/usr/local/share/x/contents.pg";
        let all = path(&[(name, "given"), ("inc/contents.pg", "dir")], &["inc/"]);
        assert_eq!(all.read(name, Some("w.pg")).unwrap().text, "given");
        let dir = path(&[("inc/contents.pg", "dir")], &["inc/"]);
        assert_eq!(dir.read(name, Some("w.pg")).unwrap().name, "inc/contents.pg");
        let none = path(&[], &["inc"]);
        let found = none.read(name, Some("w.pg")).unwrap();
        assert_eq!(found.name, "<bundled>/contents.pg");
        assert!(found.text.contains("cntImage"));
    }

    #[test]
    fn a_relative_name_is_also_looked_for_beside_the_including_file() {
        let files = path(&[("sub/b.pg", "b")], &[]);
        assert_eq!(files.read("b.pg", Some("sub/a.pg")).unwrap().name, "sub/b.pg");
    }

    #[test]
    fn the_main_file_is_never_a_bundled_one() {
        let why = path(&[], &["inc"]).read("phases.pg", None).unwrap_err();
        assert_eq!(why.to_string(), "no such file: phases.pg");
    }

    #[test]
    fn files_are_listed_with_their_lengths_and_digests() {
        let files = path(&[("inc/words.txt", "three words here")], &["inc"]);
        let found = files.files("words.txt", Some("w.pg")).unwrap();
        assert_eq!(found.set.root, Path::new("inc/words.txt"));
        let entry =
            FileEntry { path: PathBuf::new(), bytes: 16, digest: FileEntry::digest_of(b"three words here") };
        assert_eq!(found.set.files, [entry]);
        assert_eq!(found.start, b"three words here");
        assert!(files.files("other", Some("w.pg")).unwrap_err().to_string().contains("inc/other"));
    }

    #[test]
    fn positions_count_characters_not_bytes() {
        let source = Source { name: "a".into(), text: "x\nä b\r\nc".into(), included_from: None };
        assert_eq!(source.position(5), (2, 3));
        assert_eq!(source.position(usize::MAX), (3, 2));
        assert_eq!(source.line(2).0, "ä b");
        assert_eq!(source.line(9).0, "");
    }
}
