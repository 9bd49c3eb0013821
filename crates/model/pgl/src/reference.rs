//! Test that `docs/reference/pgl.md` matches the code.
//!
//! The parts of the page between `<!-- name -->` and `<!-- /name -->` are generated from the tables in the code.
//! `UPDATE_GOLDEN=1 cargo test -p assay-pgl` writes them anew.

use crate::Code;
use crate::eval::{FUNCTIONS, PROCEDURES};
use crate::schema::{OmittedFeature, REMOVED_FIELDS, RecordKind, Support, field_doc, type_doc};
use crate::units;

fn page() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/reference/pgl.md")
}

fn support_text(support: Support) -> String {
    match support {
        Support::Full => "supported".into(),
        Support::Partial(remark) => format!("partly: {remark}"),
        Support::Ignored(instead) => format!("warned about: {instead}"),
        Support::OutOfScope(feature) => {
            format!("warned about: {} is left out; {}", feature.name(), feature.replacement())
        }
    }
}

/// Numbers of fields by their support, in one line.
fn counts() -> String {
    let fields = || RecordKind::ALL.into_iter().flat_map(RecordKind::fields);
    let count = |test: fn(Support) -> bool| fields().filter(|field| test(field.support)).count();
    format!(
        "{} types and {} fields: {} supported, {} partly, {} warned about; {} of older versions are rejected.\n\n",
        RecordKind::ALL.len(),
        fields().count(),
        count(|e| e == Support::Full),
        count(|e| matches!(e, Support::Partial(_))),
        count(|e| matches!(e, Support::Ignored(_) | Support::OutOfScope(_))),
        REMOVED_FIELDS.len(),
    )
}

/// A section for each type, with a row for each field.
fn fields() -> String {
    let mut out = counts();
    for kind in RecordKind::ALL {
        let definition = kind.definition();
        let (name, is, effect_of_type) = (kind.name(), type_doc(kind), support_text(definition.support));
        out.push_str(&format!("### {name}\n\nThe type ({is}) is {effect_of_type}.\n\n"));
        let rejected: Vec<_> = REMOVED_FIELDS.iter().filter(|(of, ..)| *of == kind).collect();
        if kind.fields().next().is_none() && rejected.is_empty() {
            out.push_str("No fields.\n\n");
            continue;
        }
        out.push_str("| field | type | meaning | |\n|---|---|---|---|\n");
        for field in kind.fields() {
            let own = if field.assay_only { "; Assay's own" } else { "" };
            let ty = field.ty.name();
            let (name, acts) = (field.name, support_text(field.support));
            let says = field_doc(kind, name).unwrap_or_default();
            out.push_str(&format!("| `{name}` | `{ty}` | {says} | {acts}{own} |\n"));
        }
        for (_, name, why) in rejected {
            out.push_str(&format!("| `{name}` | | | rejected: {} |\n", why.replace('|', "\\|")));
        }
        out.push('\n');
    }
    out
}

fn topics() -> String {
    let rows = OmittedFeature::ALL
        .iter()
        .map(|feature| format!("| {} | {} |\n", feature.name(), feature.replacement()));
    format!("| left out | instead |\n|---|---|\n{}", rows.collect::<String>())
}

fn calls(all: impl Iterator<Item = (&'static str, &'static str)>) -> String {
    let calls: Vec<String> = all.map(|(name, arguments)| format!("`{name}({arguments})`")).collect();
    calls.join(" · ") + "\n"
}

fn codes() -> String {
    let rows = Code::ALL.iter().map(|code| format!("| `{code}` | {} |\n", code.meaning()));
    format!("| code | meaning |\n|---|---|\n{}", rows.collect::<String>())
}

/// The page with one of its generated parts replaced.
fn with_part(page: &str, name: &str, text: &str) -> String {
    let (open, close) = (format!("<!-- {name} -->\n"), format!("<!-- /{name} -->"));
    let start = page.find(&open).unwrap_or_else(|| panic!("the page has no {open}")) + open.len();
    let end = page[start..].find(&close).unwrap_or_else(|| panic!("the page has no {close}")) + start;
    format!("{}\n{}\n{}", &page[..start], text.trim_end(), &page[end..])
}

#[test]
fn the_reference_page_says_what_the_code_says() {
    let kept = std::fs::read_to_string(page()).unwrap();
    let functions = calls(FUNCTIONS.iter().map(|f| (f.name, f.arguments)));
    let procedures = calls(PROCEDURES.iter().map(|p| (p.name, p.arguments)));
    let units: Vec<String> = units::names().map(|name| format!("`{name}`")).collect();
    let mut page_now = kept.clone();
    let parts = [
        ("fields", fields()),
        ("topics", topics()),
        ("functions", functions),
        ("procedures", procedures),
        ("codes", codes()),
        ("units", units.join(" ")),
    ];
    for (name, text) in parts {
        page_now = with_part(&page_now, name, &text);
    }
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(page(), page_now).unwrap();
    } else {
        assert!(
            kept == page_now,
            "docs/reference/pgl.md differs from the code; UPDATE_GOLDEN=1 writes it anew"
        );
    }
}
