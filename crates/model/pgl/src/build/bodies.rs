//! Bodies of content types.

use assay_workload::model::{
    Bin, BodySource, BodySpec, Coding, Distribution, FileSet, FileSetIndex, Injection,
};

use super::{Builder, active_slot};
use crate::diagnostic::{Code, Diagnostic};
use crate::source::{ResolvedFiles, Span};
use crate::value::{Record, Value};

/// Upper bound on the sets of files of a workload; their indices have 16 bits.
const MAX_SETS: usize = 1 << 16;

#[derive(Clone, Copy, PartialEq)]
enum InjectedContent {
    Lines,
    Uri,
}

impl Builder<'_> {
    pub(super) fn body(&mut self, record: &Record, span: Span) -> BodySpec {
        BodySpec {
            source: self.body_source(record),
            unique: self.share(record, "unique"),
            codings: self.codings(record),
            injection: self.injection(record, span),
        }
    }

    fn body_source(&mut self, record: &Record) -> BodySource {
        let generators = [
            ("random_text", BodySource::Text),
            ("random_data", BodySource::Data),
            ("words", BodySource::Words),
        ];
        let generated = self.keyword(record, "generator", &generators).unwrap_or(BodySource::Text);
        self.check_exclusive(record, ["document_root", "content_db"], "bodies come from one place");
        if let Some(index) = self.file_set(record, "document_root") {
            return BodySource::Files(index);
        }
        match self.file_set(record, "content_db") {
            Some(index) => BodySource::Database(index),
            None => generated,
        }
    }

    /// Size of bodies: as declared, or that of the files they are made of.
    pub(super) fn body_size(&mut self, record: &Record, source: &BodySource, span: Span) -> Distribution {
        let zero = Distribution::Constant(0.0);
        let declared = self.distribution(record, "size");
        match source {
            BodySource::Files(index) => {
                if declared.is_some() {
                    self.warn(
                        Code::NoEffect,
                        self.field_span(record, "size"),
                        "`size` has no effect beside `document_root`",
                        "bodies are as long as their files",
                    );
                }
                self.file_sizes(*index).unwrap_or(zero)
            }
            BodySource::Database(index) => declared.or_else(|| self.file_sizes(*index)).unwrap_or(zero),
            _ => {
                let from_files =
                    ["content_db", "document_root"].iter().any(|field| record.get(field).is_some());
                // Unreadable files were reported.
                if !from_files {
                    self.require(record, "size", span, "say how large bodies are: `size = exp(13KB);`");
                }
                declared.unwrap_or(zero)
            }
        }
    }

    /// Distribution of the sizes of files.
    fn file_sizes(&self, index: FileSetIndex) -> Option<Distribution> {
        let set = self.files.get(usize::from(index))?;
        let mut sizes: Vec<u64> = set.files.iter().map(|file| file.bytes).collect();
        sizes.sort_unstable();
        let bins = sizes.chunk_by(|a, b| a == b).filter_map(|alike| {
            let size = *alike.first()? as f64;
            Some(Bin { low: size, high: size, weight: alike.len() as f64 })
        });
        Some(Distribution::Table(bins.collect()))
    }

    /// The set of files that a field names.
    fn file_set(&mut self, record: &Record, field: &str) -> Option<FileSetIndex> {
        let name = self.text(record, field)?;
        let span = self.field_span(record, field);
        let found = match self.resolver.files(&name, self.source_name(span)) {
            Ok(found) => found,
            Err(why) => {
                self.diagnostics.add(
                    Diagnostic::error(Code::Files, span, format!("cannot use `{name}`"))
                        .label(why.to_string())
                        .help("it is looked for beside this file, and in the directories of -I"),
                );
                return None;
            }
        };
        if field != "document_root" && is_polygraph_database(&found) {
            self.diagnostics.add(
                Diagnostic::error(Code::Files, span, "this file is in the format of polygraph-cdb")
                    .label(
                        "expected the entries themselves: a file, or a directory with a file for each entry",
                    )
                    .help(format!(
                        "`polygraph-cdb {name} dump --format verbatim > {name}.txt` writes them as text"
                    )),
            );
            return None;
        }
        if found.set.files.is_empty() {
            self.error(
                Code::Files,
                span,
                format!("there is nothing in `{name}`"),
                "expected files that are not empty",
            );
            return None;
        }
        self.add_files(found.set, span)
    }

    fn add_files(&mut self, set: FileSet, span: Span) -> Option<FileSetIndex> {
        let known = self.known_files.get(&set.root).copied();
        if known.is_some() {
            return known;
        }
        if self.files.len() >= MAX_SETS {
            self.error(Code::TooMany, span, "too many files", "at most 65536 databases and directories");
            return None;
        }
        let index = self.files.len() as FileSetIndex;
        self.known_files.insert(set.root.clone(), index);
        self.files.push(set);
        Some(index)
    }

    /// `encodings`, in order.
    fn codings(&mut self, record: &Record) -> Vec<Coding> {
        let known = [("identity", Coding::Identity), ("gzip", Coding::Gzip)];
        let Some(words) = self.keywords(record, "encodings", &known) else { return vec![] };
        words.items().iter().map(|(coding, _)| *coding).collect()
    }

    fn injection(&mut self, record: &Record, span: Span) -> Option<Injection> {
        let fields = ["infect_prob", "inject_object", "inject_db", "inject_gap"];
        let at = fields.into_iter().find_map(|field| record.get(field)).map(|slot| slot.span)?;
        let known = [("db_text", InjectedContent::Lines), ("request_uri", InjectedContent::Uri)];
        let database = record.get("inject_db").is_some();
        let object = match self.keyword(record, "inject_object", &known) {
            None if database => InjectedContent::Lines,
            None => {
                let broken = record.get("inject_object").is_some();
                if !broken {
                    self.report_missing_injection(
                        at,
                        "what is put into bodies",
                        "`inject_db` or `inject_object`",
                    );
                }
                return None;
            }
            Some(object) => object,
        };
        if object == InjectedContent::Uri && database {
            self.check_exclusive(record, ["inject_object", "inject_db"], "one thing is put into bodies");
            return None;
        }
        let share = self.share(record, "infect_prob");
        if record.get("infect_prob").is_none() {
            self.report_missing_injection(at, "how many bodies get any", "`infect_prob`, such as 100%,");
        }
        if object == InjectedContent::Uri {
            if let Some(gap) = active_slot(record, "inject_gap") {
                self.warn(
                    Code::NoEffect,
                    gap.span,
                    "`inject_gap` has no effect",
                    "the URI comes once, at the end",
                );
            }
            let gap_bytes = Distribution::Constant(0.0);
            return Some(Injection { lines: None, gap_bytes, share: share? });
        }
        if !self.require(record, "inject_db", span, "name a text file with the lines to put into bodies") {
            return None;
        }
        if record.get("inject_gap").is_none() {
            self.report_missing_injection(at, "how far lines are apart", "`inject_gap`, such as `exp(1KB)`,");
        }
        let lines = self.file_set(record, "inject_db")?;
        if self.files.get(usize::from(lines)).is_some_and(|set| set.files.len() > 1) {
            self.error(
                Code::Files,
                self.field_span(record, "inject_db"),
                "the lines to put into bodies are in one file",
                "this is a directory with several",
            );
        }
        Some(Injection {
            lines: Some(lines),
            gap_bytes: self.distribution(record, "inject_gap")?,
            share: share?,
        })
    }

    fn report_missing_injection(&mut self, at: Span, missing: &str, fields: &str) {
        self.diagnostics.add(
            Diagnostic::error(Code::Required, at, format!("it is not said {missing}"))
                .label(format!("{fields} must be set too")),
        );
    }

    /// Name of the source of a span, from which relative paths are resolved.
    pub(super) fn source_name(&self, span: Span) -> Option<&str> {
        self.sources.get(span.source as usize).map(|source| source.name.as_str())
    }

    /// The text of a file that a field names.
    pub(super) fn read_named_file(&mut self, record: &Record, field: &str) -> Option<String> {
        let slot = record.get(field)?;
        let Value::Text(name) = &slot.value else { return None };
        let name = name.to_string();
        match self.resolver.read(&name, self.source_name(slot.span)) {
            Ok(found) => Some(found.text),
            Err(why) => {
                self.diagnostics.add(
                    Diagnostic::error(Code::Files, slot.span, format!("cannot read `{name}`"))
                        .label(why.to_string())
                        .help("name the directory it is in with -I DIR"),
                );
                None
            }
        }
    }
}

/// True for a single file in the format of polygraph-cdb, which begins with a count and the kind of the first entry, both
/// 32-bit big-endian.
fn is_polygraph_database(found: &ResolvedFiles) -> bool {
    let one = found.set.files.len() == 1;
    match *found.start.as_slice() {
        [0, a, b, c, 0, 0, 0, kind, ..] => one && (a, b, c) != (0, 0, 0) && kind <= 16,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_workload::model::FileEntry;

    #[test]
    fn a_database_of_polygraph_cdb_is_told_from_other_files() {
        let found = |start: &[u8]| ResolvedFiles {
            set: FileSet { files: vec![FileEntry::default()], ..FileSet::default() },
            start: start.to_vec(),
        };
        assert!(is_polygraph_database(&found(&[0, 0, 0, 3, 0, 0, 0, 1, 0, 0])));
        for other in
            [&b"<html>"[..], b"\0\0\0\x18ftypmp42", b"\0\0\x01\0\x01\0\x10\x10", b"\0\0\0\0\0\0\0\0", b"\0"]
        {
            assert!(!is_polygraph_database(&found(other)));
        }
    }
}
