//! `docs/reference/pgl.md`, held against the code.
//!
//! The parts of the page between `<!-- name -->` and `<!-- /name -->` are made from the tables in the code.
//! `UPDATE_GOLDEN=1 cargo test -p assay-pgl` writes them anew.

use crate::Code;
use crate::eval::{FUNCTIONS, PROCEDURES};
use crate::schema::{Effect, REJECTED, RecordKind, Topic, meaning, type_meaning};
use crate::units;

fn page() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/reference/pgl.md")
}

/// One of four words, and what is to be said about it.
fn effect(effect: Effect) -> String {
    match effect {
        Effect::Full => "supported".into(),
        Effect::Part(remark) => format!("partly: {remark}"),
        Effect::None(instead) => format!("warned about: {instead}"),
        Effect::LeftOut(topic) => {
            format!("warned about: {} is left out; {}", topic.name(), topic.instead())
        }
    }
}

/// How many fields there are of each kind, in one line.
fn counts() -> String {
    let fields = || RecordKind::ALL.into_iter().flat_map(RecordKind::fields);
    let count = |test: fn(Effect) -> bool| fields().filter(|field| test(field.effect)).count();
    format!(
        "{} types and {} fields: {} supported, {} partly, {} warned about; {} of older versions are rejected.\n\n",
        RecordKind::ALL.len(),
        fields().count(),
        count(|e| e == Effect::Full),
        count(|e| matches!(e, Effect::Part(_))),
        count(|e| matches!(e, Effect::None(_) | Effect::LeftOut(_))),
        REJECTED.len(),
    )
}

/// A section for each type, with a row for each field.
fn fields() -> String {
    let mut out = counts();
    for kind in RecordKind::ALL {
        let definition = kind.definition();
        let (name, is, effect_of_type) = (kind.name(), type_meaning(kind), effect(definition.effect));
        out.push_str(&format!("### {name}\n\nThe type ({is}) is {effect_of_type}.\n\n"));
        let rejected: Vec<_> = REJECTED.iter().filter(|(of, ..)| *of == kind).collect();
        if kind.fields().next().is_none() && rejected.is_empty() {
            out.push_str("No fields.\n\n");
            continue;
        }
        out.push_str("| field | type | meaning | |\n|---|---|---|---|\n");
        for field in kind.fields() {
            let own = if field.own { "; Assay's own" } else { "" };
            let ty = field.ty.name();
            let (name, acts) = (field.name, effect(field.effect));
            let says = meaning(kind, name).unwrap_or_default();
            out.push_str(&format!("| `{name}` | `{ty}` | {says} | {acts}{own} |\n"));
        }
        for (_, name, why) in rejected {
            out.push_str(&format!("| `{name}` | | | rejected: {} |\n", why.replace('|', "\\|")));
        }
        out.push('\n');
    }
    out
}

/// What is left out on purpose, with one warning each.
fn topics() -> String {
    let rows = Topic::ALL.iter().map(|topic| format!("| {} | {} |\n", topic.name(), topic.instead()));
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

/// The page with one of its made parts as it must be.
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
