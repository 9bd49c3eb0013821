//! Source text, and positions in it.
//!
//! The compiler opens no file. It calls a [`Resolver`]; [`SearchPath`] is the usual one, and is itself given
//! the [`Files`] it may look into: a directory tree, or a closure that knows texts.

use std::path::{Path, PathBuf};

use assay_workload::model::{FileEntry, FileSet};

/// What stands in a text for bytes that are no text (UTF-8): whoever reads files puts it there ([`Files::text`]). Written where it means
/// something, it is refused; old files have names in other codings in their comments.
pub const REPLACEMENT: char = char::REPLACEMENT_CHARACTER;

/// One text that took part in a compilation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Its name as given: on the command line, in `#include`, or `<bundled>/name`.
    pub name: String,
    pub text: String,
    /// The `#include` that brought it in; none for the main file.
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

    /// The line (from 1) without its end, and the byte offset it starts at.
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

/// A stretch of source text: bytes `start..end` of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Span {
    /// Index into the sources of the compilation.
    pub source: u32,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// From the start of this to the end of `last`; this alone when they lie in different sources.
    pub fn to(self, last: Span) -> Span {
        if self.source == last.source && last.end >= self.start {
            Span { end: last.end.max(self.end), ..self }
        } else {
            self
        }
    }

    /// The empty place just after it.
    pub fn after(self) -> Span {
        Span { start: self.end, ..self }
    }
}

/// What a resolver found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedSource {
    /// The name to show in messages.
    pub name: String,
    pub text: String,
}

/// Files that bodies are made of.
#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedFiles {
    /// Where they are, how long, and their digests. Empty files are left out.
    pub set: FileSet,
    /// How the first of them begins (at most [`ResolvedFiles::START`] bytes).
    pub start: Vec<u8>,
}

impl ResolvedFiles {
    /// Bytes kept of the first file.
    pub const START: usize = 64;
}

/// Gives the compiler the files it requests. Errors say what was tried, in one sentence.
pub trait Resolver {
    /// Finds the text `name`, which the file `including` (its name as resolved) requests; none: the main file.
    fn read(&self, name: &str, including: Option<&str>) -> Result<ResolvedSource, String>;

    /// Finds the file or directory `name`, which the file `including` requests, and lists all files in it.
    fn files(&self, name: &str, _including: Option<&str>) -> Result<ResolvedFiles, String> {
        Err(format!("{name} is not looked for: only texts can be read here"))
    }
}

/// What a listing found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// The directory, or the one file itself, as it is found from anywhere.
    pub root: PathBuf,
    /// Regular files below it in order of their names, relative to it; one empty path when the root is a file.
    pub files: Vec<PathBuf>,
}

/// A file system, as far as [`SearchPath`] needs one. Errors say why something that is there cannot be read.
pub trait Files {
    /// The text of a file, with [`REPLACEMENT`] for what is none; none when there is no such file.
    fn text(&self, path: &str) -> Result<Option<String>, String>;

    /// What a file or directory holds; none when there is neither.
    fn list(&self, path: &str) -> Result<Option<Listing>, String>;

    /// All bytes of a file.
    fn bytes(&self, path: &Path) -> Result<Vec<u8>, String>;
}

/// Texts that a closure knows by their paths.
pub struct Texts<F>(F);

impl<F: Fn(&str) -> Result<Option<String>, String>> Files for Texts<F> {
    fn text(&self, path: &str) -> Result<Option<String>, String> {
        (self.0)(path)
    }

    fn list(&self, path: &str) -> Result<Option<Listing>, String> {
        let listing = |_| Listing { root: PathBuf::from(path), files: vec![PathBuf::new()] };
        (self.0)(path).map(|found| found.map(listing))
    }

    fn bytes(&self, path: &Path) -> Result<Vec<u8>, String> {
        match (self.0)(&path.to_string_lossy()) {
            Ok(text) => text.map(String::into_bytes).ok_or_else(|| "it is gone".to_owned()),
            Err(why) => Err(why),
        }
    }
}

/// The workload files inside the compiler, by base name.
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

/// The names of the bundled files.
pub fn bundled_names() -> impl Iterator<Item = &'static str> {
    BUNDLED.iter().map(|(name, _)| *name)
}

/// Looks for a file under its name as given, beside the file that includes it, in directories, and at last
/// among the bundled ones.
pub struct SearchPath<F> {
    directories: Vec<String>,
    files: F,
}

impl<F: Fn(&str) -> Result<Option<String>, String>> SearchPath<Texts<F>> {
    /// Searches `directories` in order among texts: `read` gets a path and returns the text, nothing when there is
    /// no such file, or why it cannot be read.
    pub fn new(directories: Vec<String>, read: F) -> Self {
        Self { directories, files: Texts(read) }
    }
}

impl<F: Files> SearchPath<F> {
    /// Searches `directories` (of `-I`) in order.
    pub fn over(directories: Vec<String>, files: F) -> Self {
        Self { directories, files }
    }

    /// The paths to try, best first, each once.
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

/// The part of a path after its last slash.
fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

impl<F: Files> Resolver for SearchPath<F> {
    fn read(&self, name: &str, including: Option<&str>) -> Result<ResolvedSource, String> {
        let candidates = self.candidates(name, including);
        for path in &candidates {
            match self.files.text(path) {
                Ok(Some(text)) => return Ok(ResolvedSource { name: path.clone(), text }),
                Ok(None) => {}
                Err(why) => return Err(format!("cannot read {path}: {why}")),
            }
        }
        if including.is_some()
            && let Some(text) = bundled(base_name(name))
        {
            let name = format!("<bundled>/{}", base_name(name));
            return Ok(ResolvedSource { name, text: text.to_owned() });
        }
        Err(format!("no such file: {}", candidates.join(", ")))
    }

    fn files(&self, name: &str, including: Option<&str>) -> Result<ResolvedFiles, String> {
        let candidates = self.candidates(name, including);
        for path in &candidates {
            match self.files.list(path) {
                Ok(Some(listing)) => return self.measured(listing),
                Ok(None) => {}
                Err(why) => return Err(format!("cannot read {path}: {why}")),
            }
        }
        Err(format!("no such file or directory: {}", candidates.join(", ")))
    }
}

impl<F: Files> SearchPath<F> {
    /// A listing with the lengths and digests of its files.
    fn measured(&self, listing: Listing) -> Result<ResolvedFiles, String> {
        let mut set = FileSet { root: listing.root, files: Vec::with_capacity(listing.files.len()) };
        let mut start = Vec::new();
        for path in listing.files {
            let whole = if path.as_os_str().is_empty() { set.root.clone() } else { set.root.join(&path) };
            let bytes =
                self.files.bytes(&whole).map_err(|why| format!("cannot read {}: {why}", whole.display()))?;
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
        SearchPath::new(directories.iter().map(|d| (*d).to_owned()).collect(), move |name| {
            Ok(files.get(name).cloned())
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
        assert_eq!(why, "no such file: phases.pg");
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
        assert!(files.files("other", Some("w.pg")).unwrap_err().contains("inc/other"));
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
