//! The cases that come with Assay, those of a user, and what can be chosen of them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use assay_base::settings::Mistake;
use assay_base::settings::suggest::or_did_you_mean;
use thiserror::Error;

use crate::case::Case;
use crate::read::{CaseFile, read};

macro_rules! bundled {
    ($($name:literal),* $(,)?) => {
        /// Files that are compiled in: name and text.
        pub const BUNDLED: &[(&str, &str)] =
            &[$((concat!("conformance/", $name, ".toml"), include_str!(concat!("../../../../conformance/", $name, ".toml")))),*];
    };
}

bundled!(
    "storing",
    "freshness",
    "validation",
    "vary",
    "invalidation",
    "ranges",
    "requests",
    "keys",
    "stale",
    "status-fields",
    "forwarding",
    "attacks",
    "framing",
    "http2",
    "http2-frames"
);

/// Reason for which there are no cases to try.
#[derive(Debug, Error)]
pub enum SuiteError {
    /// A file has a mistake.
    #[error(transparent)]
    Mistake(#[from] Mistake),
    /// A file or directory cannot be read.
    #[error("cannot read {path}: {error}")]
    Unreadable {
        /// The file or directory.
        path: PathBuf,
        error: std::io::Error,
    },
    /// A directory has no case files.
    #[error(
        "{0} has no file whose name ends in .toml; a case file looks like `assay conform show CASE --toml` prints it"
    )]
    Empty(PathBuf),
    /// Two cases have one name.
    #[error("{second}: the case `{name}` is already at {first}; give it another name")]
    Twice { name: String, first: String, second: String },
    /// A case depends on one that is not there, or on itself.
    #[error("{place}: the case `{name}` depends on `{on}`, which {why}")]
    Dependency {
        place: String,
        name: String,
        /// Name of the dependency.
        on: String,
        /// Defect of the dependency.
        why: String,
    },
    /// No case or topic has a name that was selected.
    #[error("there is no case or topic called `{name}`{meant}; `assay conform list` lists them")]
    Unknown {
        name: String,
        /// Suggestion of a similar name.
        meant: String,
    },
}

/// Cases, each with a name of its own.
#[derive(Debug, Clone, Default)]
pub struct Suite {
    /// Topics with a sentence on each, in the order of their files.
    pub topics: Vec<(String, String)>,
    pub cases: Vec<Rc<Case>>,
}

impl Suite {
    /// The cases that come with Assay.
    pub fn bundled() -> Result<Self, SuiteError> {
        let files: Result<Vec<CaseFile>, Mistake> =
            BUNDLED.iter().map(|(name, text)| read(name, text)).collect();
        Self::of(files?)
    }

    /// The cases of a user's directory, with the bundled ones that they depend on.
    pub fn in_directory(directory: &Path) -> Result<Self, SuiteError> {
        let unreadable = |path: &Path, error| SuiteError::Unreadable { path: path.to_owned(), error };
        let entries = std::fs::read_dir(directory).map_err(|error| unreadable(directory, error))?;
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
        paths.sort();
        if paths.is_empty() {
            return Err(SuiteError::Empty(directory.to_owned()));
        }
        let mut files = Vec::new();
        for path in paths {
            let text = assay_base::files::text(&path, assay_base::files::SETTINGS_MAX)
                .map_err(|error| unreadable(&path, error))?;
            files.push(read(&path.display().to_string(), &text)?);
        }
        let own: BTreeSet<String> =
            files.iter().flat_map(|file| &file.cases).map(|case| case.name.clone()).collect();
        let wanted: BTreeSet<String> =
            files.iter().flat_map(|file| &file.cases).flat_map(|case| &case.depends).cloned().collect();
        let missing: Vec<String> = wanted.difference(&own).cloned().collect();
        if !missing.is_empty() {
            let bundled = Self::bundled()?;
            let known: Vec<String> =
                missing.into_iter().filter(|name| bundled.find(name).is_some()).collect();
            let needed = bundled.with_dependencies(known);
            let cases = needed.iter().map(|case| (**case).clone()).collect();
            files.push(CaseFile {
                topic: "bundled".into(),
                about: "What the others depend on".into(),
                cases,
            });
        }
        Self::of(files)
    }

    fn of(files: Vec<CaseFile>) -> Result<Self, SuiteError> {
        let mut suite = Self::default();
        let mut places: BTreeMap<String, String> = BTreeMap::new();
        for file in files {
            if !suite.topics.iter().any(|(topic, _)| *topic == file.topic) {
                suite.topics.push((file.topic, file.about));
            }
            for case in file.cases {
                if let Some(first) = places.insert(case.name.clone(), case.location.clone()) {
                    return Err(SuiteError::Twice { name: case.name, first, second: case.location });
                }
                suite.cases.push(Rc::new(case));
            }
        }
        suite.check_dependencies()?;
        Ok(suite)
    }

    fn check_dependencies(&self) -> Result<(), SuiteError> {
        let by_name: BTreeMap<&str, &Case> =
            self.cases.iter().map(|case| (case.name.as_str(), &**case)).collect();
        for case in &self.cases {
            let wrong = |on: &str, why: String| SuiteError::Dependency {
                place: case.location.clone(),
                name: case.name.clone(),
                on: on.to_owned(),
                why,
            };
            for on in &case.depends {
                let Some(other) = by_name.get(on.as_str()) else {
                    let meant = or_did_you_mean(on, by_name.keys().copied());
                    return Err(wrong(on, format!("no case is called{meant}")));
                };
                if relies_on(other, &case.name, &by_name) {
                    return Err(wrong(on, "depends on it in turn".to_owned()));
                }
            }
        }
        Ok(())
    }

    /// The case of this name.
    pub fn find(&self, name: &str) -> Option<&Rc<Case>> {
        self.cases.iter().find(|case| case.name == name)
    }

    /// The cases that are chosen by name, by the name without a row, or by topic, and those that they depend on; all, if none is.
    pub fn chosen(&self, names: &[String]) -> Result<Vec<Rc<Case>>, SuiteError> {
        if names.is_empty() {
            return Ok(self.cases.clone());
        }
        let mut all = Vec::new();
        for name in names {
            let is_meant = |case: &&Rc<Case>| case.is_called(name);
            let found: Vec<String> =
                self.cases.iter().filter(is_meant).map(|case| case.name.clone()).collect();
            if found.is_empty() {
                let topics = self.topics.iter().map(|(topic, _)| topic.as_str());
                let known = topics.chain(self.cases.iter().map(|case| case.name.as_str()));
                return Err(SuiteError::Unknown { name: name.clone(), meant: or_did_you_mean(name, known) });
            }
            all.extend(found);
        }
        Ok(self.with_dependencies(all))
    }

    /// Cases by name with everything that they depend on, in the order of the suite.
    fn with_dependencies(&self, names: Vec<String>) -> Vec<Rc<Case>> {
        let (mut wanted, mut open) = (BTreeSet::new(), names);
        while let Some(name) = open.pop() {
            if let Some(case) = self.find(&name)
                && wanted.insert(name)
            {
                open.extend(case.depends.iter().cloned());
            }
        }
        self.cases.iter().filter(|case| wanted.contains(&case.name)).cloned().collect()
    }
}

/// True if a case is the one of this name, or depends on it, directly or by others.
fn relies_on(case: &Case, name: &str, by_name: &BTreeMap<&str, &Case>) -> bool {
    let (mut seen, mut open) = (BTreeSet::new(), vec![case]);
    while let Some(next) = open.pop() {
        if next.name == name {
            return true;
        }
        if seen.insert(next.name.as_str()) {
            open.extend(next.depends.iter().filter_map(|on| by_name.get(on.as_str()).copied()));
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bundled_cases_can_be_read_and_each_has_a_reason() {
        let suite = Suite::bundled().unwrap();
        for case in &suite.cases {
            assert!(case.rule.ends_with('.'), "{}: the rule is a sentence", case.name);
            assert!(!case.section.is_empty(), "{}", case.name);
            assert!(!case.rule.contains(['{', '}']), "{}: {}", case.name, case.rule);
        }
    }

    #[test]
    fn rules_name_their_row_and_have_no_other_braces() {
        let file = |rule: &str| {
            let text = format!(
                "topic = \"t\"\n[[case]]\nname = \"a\"\nlevel = \"MAY\"\nsection = \"s\"\nrule = \"{rule}\"\n\
                 each = [{{ as = \"b-c\", to = \"{{date}}\" }}]\nsteps = [{{ expect = {{ status = 200 }} }}]\n"
            );
            read("x.toml", &text)
                .map(|file| file.cases[0].rule.clone())
                .map_err(|mistake| mistake.to_string())
        };
        assert_eq!(file("It is so ({as})."), Ok("It is so (b-c).".to_owned()));
        for (rule, left) in [("It is {so}.", "{so}"), ("It is at {url}.", "{url}"), ("It is {to}.", "{date}")]
        {
            let refused = file(rule).unwrap_err();
            assert!(refused.contains(&format!("x.toml:6: rule: `{left}` stands for nothing")), "{refused}");
        }
    }

    #[test]
    fn what_is_chosen_brings_what_it_depends_on() {
        let suite = Suite::bundled().unwrap();
        let with = suite.cases.iter().find(|case| !case.depends.is_empty()).unwrap();
        let chosen = suite.chosen(std::slice::from_ref(&with.name)).unwrap();
        for on in &with.depends {
            assert!(chosen.iter().any(|case| case.name == *on), "{on}");
        }
        let unknown = suite.chosen(&["freshnes".to_owned()]).unwrap_err().to_string();
        assert!(unknown.contains("did you mean `freshness`?"), "{unknown}");
    }

    fn refused(text: &str) -> String {
        Suite::of(vec![read("x.toml", text).unwrap()]).unwrap_err().to_string()
    }

    #[test]
    fn cases_that_cannot_be_told_apart_or_depend_on_nothing_are_refused_with_their_line() {
        let case = |name: &str, depends: &str| {
            format!(
                "[[case]]\nname = \"{name}\"\nlevel = \"MAY\"\nsection = \"s\"\nrule = \"r.\"\ndepends = [{depends}]\nsteps = [{{ expect = {{ status = 200 }} }}]\n"
            )
        };
        let file = |cases: &[String]| format!("topic = \"t\"\n{}", cases.concat());
        let twice = refused(&file(&[case("a", "\"b\""), case("b", "\"a\"")]));
        assert!(
            twice.contains("x.toml:2: the case `a` depends on `b`, which depends on it in turn"),
            "{twice}"
        );
        let missing = refused(&file(&[case("stores", "\"stars\"")]));
        assert!(missing.contains("did you mean `stores`?"), "{missing}");
    }
}
