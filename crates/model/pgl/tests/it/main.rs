//! Tests of the compiler with whole programs: workloads or diagnostics.

mod arrivals;
mod broken;
#[path = "../../../workload/tests/it/chance.rs"]
mod chance;
mod formatting;
mod golden;
mod listings;
mod lsp;
mod polygraph;

use assay_pgl::{Compiled, Failure, SearchPath, compile};

/// A file of the test data.
pub fn data(name: &str) -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// Compiles a text that may include bundled files and files given with it.
pub fn compile_text(text: &str, others: &[(&str, &str)]) -> Result<Compiled, Box<Failure>> {
    let resolver = SearchPath::from_fn(vec![], |name| {
        let other = others.iter().find(|(other, _)| *other == name).map(|(_, text)| (*text).to_owned());
        if name == "main.pg" { Some(text.to_owned()) } else { other }
    });
    compile("main.pg", &resolver).map_err(Box::new)
}

/// All diagnostics, as a terminal would show them.
pub fn rendered(result: &Result<Compiled, Box<Failure>>) -> String {
    let (diagnostics, sources) = match result {
        Ok(compiled) => (&compiled.warnings, &compiled.sources),
        Err(failure) => (&failure.diagnostics, &failure.sources),
    };
    diagnostics.iter().map(|diagnostic| diagnostic.render(sources, false) + "\n").collect()
}
