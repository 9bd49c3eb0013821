//! Sources of a workload: a file, standard input, or the workloads that are compiled in.

use std::cell::OnceCell;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use assay_base::settings::suggest::or_did_you_mean;
use assay_pgl::{
    Code, Compiled, Diagnostic, FileError, Files, Listing, ResolveError, ResolvedFiles, ResolvedSource,
    Resolver, SearchPath, Source, Span,
};
use assay_report::require::Requirement;

use crate::bundled;
use crate::exit::Failure;
use crate::file_kind::{self, FileKind};
use crate::output;

/// Compiles what the user named. What the compiler has to say goes to standard error, but for warnings if it is quiet.
pub fn compile(name: &str, include: &[PathBuf], is_quiet: bool) -> Result<Compiled, Failure> {
    if let Some(other) = file_kind::from_name(name).filter(|kind| *kind != FileKind::Workload) {
        return Err(other.refused(name, FileKind::Workload));
    }
    if file_kind::is_toml(name) {
        return Err(Failure::usage(anyhow!("{name} is a TOML file, and not a workload")).hint(
            "a workload is a text file in PGL; experiments are TOML files: `assay lab FILE.toml` says what is wrong in one",
        ));
    }
    if name != "-" && bundled::find(name).is_none() && !Path::new(name).exists() {
        // Those that come with Assay are called without the `.pg`.
        let stem =
            Path::new(name).file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
        let meant = or_did_you_mean(&stem, bundled::all().map(|workload| workload.name));
        return Err(Failure::usage(anyhow!("there is no workload file {name}{meant}")).hint(
            "give the path of a PGL file, or the name of a bundled workload: `assay workloads` lists them",
        ));
    }
    let directories = include.iter().map(|directory| directory.display().to_string()).collect();
    let files = FileSystem::new();
    let resolver = WithBundled { search: SearchPath::new(directories, files) };
    // What is not there to be compiled is not a mistake in it.
    resolver.read(name, None).map_err(|why| {
        Failure::usage(anyhow!(why))
            .hint("a workload is a text file in PGL; `assay workloads` lists those that come with Assay")
    })?;
    let colour = io::stderr().is_terminal() && !output::no_colour();
    let show = |diagnostics: &[assay_pgl::Diagnostic], sources: &[Source]| {
        output::eprint_drawn(|styled| {
            diagnostics.iter().map(|d| d.render(sources, styled && colour) + "\n").collect()
        });
    };
    match assay_pgl::compile(name, &resolver) {
        Ok(compiled) => {
            if !is_quiet {
                show(&compiled.warnings, &compiled.sources);
            }
            match requirements(&compiled) {
                wrong if wrong.is_empty() => Ok(compiled),
                wrong => {
                    show(&wrong, &compiled.sources);
                    Err(Failure::usage(anyhow!("{name} requires what cannot be judged")))
                }
            }
        }
        Err(failure) => {
            show(&failure.diagnostics, &failure.sources);
            let errors = failure.diagnostics.iter().filter(|d| d.is_error()).count();
            let plural = if errors == 1 { "an error".into() } else { format!("{errors} errors") };
            let name = if name == "-" { "the workload" } else { name };
            Err(Failure::usage(anyhow!("{name} does not compile: {plural}")))
        }
    }
}

/// Errors in a workload's requirements: the compiler passes them on as they are.
fn requirements(compiled: &Compiled) -> Vec<Diagnostic> {
    let names = compiled.workload.schedule.phases.iter().map(|phase| phase.name.as_str());
    let both = compiled.workload.requirements.iter().zip(&compiled.requirement_spans);
    let wrong = |(text, place): (&String, &Span)| {
        // Places are in what is read.
        let before = text.len() - text.trim_start().len();
        let read =
            text.trim().parse::<Requirement>().and_then(|required| required.check_phase(names.clone()));
        let error = read.err()?;
        let mut span = *place;
        // Within the quotation marks, where nothing in them was written in another way.
        if (span.end - span.start) as usize == text.len() + 2 {
            let at = |offset: usize| place.start + 1 + (before + offset).min(text.len()) as u32;
            span = Span { start: at(error.span.0), end: at(error.span.1).max(at(error.span.0) + 1), ..span };
        }
        Some(Diagnostic::error(Code::Arguments, span, error.message).maybe_help(error.help))
    };
    both.filter_map(wrong).collect()
}

/// Bundled workloads first: `demo` is the demo, `./demo` is a file.
struct WithBundled<R> {
    search: R,
}

impl<R: Resolver> Resolver for WithBundled<R> {
    fn read(&self, name: &str, including: Option<&str>) -> Result<ResolvedSource, ResolveError> {
        match (including, bundled::find(name)) {
            (None, Some(workload)) => Ok(ResolvedSource {
                name: format!("<bundled>/{}.pg", workload.name),
                text: workload.text.to_owned(),
            }),
            _ => self.search.read(name, including),
        }
    }

    fn files(&self, name: &str, including: Option<&str>) -> Result<ResolvedFiles, ResolveError> {
        self.search.files(name, including)
    }
}

/// Files below one directory that bodies can be made of.
const MOST_FILES: usize = 100_000;

/// The file system, with standard input as `-` (read once, however often it is requested).
pub struct FileSystem {
    standard_input: OnceCell<Result<String, FileError>>,
}

impl FileSystem {
    /// Nothing has been read from standard input.
    pub fn new() -> Self {
        Self { standard_input: OnceCell::new() }
    }
}

impl Files for FileSystem {
    fn text(&self, path: &str) -> Result<Option<String>, FileError> {
        if path == "-" {
            let read = || {
                let bytes = assay_base::files::limited(io::stdin(), assay_base::files::SOURCE_MAX)?;
                Ok(assay_base::files::lossy_text(bytes)?)
            };
            return self.standard_input.get_or_init(read).clone().map(Some);
        }
        let bytes = assay_base::files::bytes(Path::new(path), assay_base::files::SOURCE_MAX);
        match bytes.and_then(assay_base::files::lossy_text) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn list(&self, path: &str) -> Result<Option<Listing>, FileError> {
        let root = match std::fs::canonicalize(path) {
            Ok(root) => root,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        if root.is_file() {
            return Ok(Some(Listing { root, files: vec![PathBuf::new()] }));
        }
        let mut files = Vec::new();
        let mut open = vec![PathBuf::new()];
        while let Some(directory) = open.pop() {
            for entry in std::fs::read_dir(root.join(&directory))? {
                let entry = entry?;
                let inner = directory.join(entry.file_name());
                let kind = entry.file_type()?;
                match kind {
                    _ if kind.is_dir() => open.push(inner),
                    // Links to files are followed, links to directories are not: they may lead in a circle.
                    _ if root.join(&inner).is_file() => files.push(inner),
                    _ => {}
                }
            }
            if files.len() > MOST_FILES {
                return Err(FileError::TooManyFiles(MOST_FILES));
            }
        }
        files.sort();
        Ok(Some(Listing { root, files }))
    }

    fn bytes(&self, path: &Path) -> Result<Vec<u8>, FileError> {
        Ok(assay_base::files::bytes(path, assay_base::files::BODY_MAX)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_lists_all_its_files_and_a_file_itself() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
        std::fs::create_dir_all(directory.path().join("b/c")).unwrap();
        write("z.html", "z");
        write("b/c/a.html", "aa");
        write("empty", "");
        let files = FileSystem::new();
        let path = directory.path().display().to_string();
        let listing = files.list(&path).unwrap().unwrap();
        assert_eq!(listing.files, ["b/c/a.html", "empty", "z.html"].map(PathBuf::from));
        assert!(listing.root.is_absolute());
        let one = files.list(&format!("{path}/z.html")).unwrap().unwrap();
        assert_eq!((one.files, one.root), (vec![PathBuf::new()], listing.root.join("z.html")));
        assert_eq!(files.list(&format!("{path}/none")).unwrap(), None);

        let search = SearchPath::new(vec![path], files);
        let found = search.files("b", Some("workload.pg")).unwrap();
        assert_eq!((found.set.files.len(), found.start), (1, b"aa".to_vec()));
        assert_eq!(search.files("empty", Some("workload.pg")).unwrap().set.files, []);
    }
}
