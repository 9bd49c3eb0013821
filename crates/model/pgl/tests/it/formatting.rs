//! The layout of every workload in this repository: it changes nothing that counts.

use std::path::{Path, PathBuf};

use assay_pgl::{Code, SearchPath, Severity, compile, format};

/// All PGL files of the repository.
fn all() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            if path.is_dir() && !["target", ".git", "runs", "node_modules"].contains(&name.as_str()) {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "pg") {
                found.push(path);
            }
        }
    }
    found.sort();
    assert!(found.len() > 90, "{}", found.len());
    found
}

/// The workload of a text, and its diagnostics without places, which a layout moves.
fn compiled(path: &Path, text: &str) -> (Option<String>, Vec<(Severity, Code, String)>) {
    let main = path.display().to_string();
    let resolver = SearchPath::from_fn(vec![], |name| {
        if name == main { Some(text.to_owned()) } else { std::fs::read_to_string(name).ok() }
    });
    let (workload, diagnostics) = match compile(&main, &resolver) {
        Ok(compiled) => (Some(serde_json::to_string(&compiled.workload).unwrap()), compiled.warnings),
        Err(failure) => (None, failure.diagnostics),
    };
    let mut rendered: Vec<_> = diagnostics.into_iter().map(|d| (d.severity, d.code, d.message)).collect();
    rendered.sort_by(|a, b| (a.1, &a.2).cmp(&(b.1, &b.2)));
    (workload, rendered)
}

#[test]
fn every_workload_means_the_same_when_it_is_laid_out_and_keeps_its_comments() {
    let (mut laid_out, mut refused) = (0, Vec::new());
    for path in all() {
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.display().to_string();
        let Ok(once) = format(&name, &text) else {
            refused.push(path);
            continue;
        };
        assert_eq!(format(&name, &once).unwrap(), once, "{name}: not idempotent");
        // All but blanks is there, so comments are too.
        let letters = |text: &str| text.split_whitespace().collect::<String>();
        assert_eq!(letters(&once), letters(&text), "{name}");
        assert_eq!(compiled(&path, &once), compiled(&path, &text), "{name}");
        laid_out += 1;
    }
    assert!(laid_out > 75, "only {laid_out} were laid out");
    // Refused are those that are wrong on purpose, and templates (`@NAME@`).
    for path in refused {
        let shown = path.display().to_string();
        let wrong = shown.contains("/data/err/") || shown.contains("/data/bad/");
        let is_template = std::fs::read_to_string(&path).unwrap().contains("@ROBOTS@");
        assert!(wrong || is_template, "{shown} is refused");
    }
}
