//! One word for one thing: the page of terms.

use std::collections::BTreeSet;

use crate::support::{read, root};

/// Most terms that a newcomer is asked to learn.
const MOST_TERMS: usize = 60;

fn page() -> String {
    read(&root().join("docs/reference/terms.md"))
}

/// First cells of the rows of all tables below a heading that `is_meant`, without their heads.
fn first_cells(page: &str, is_meant: impl Fn(&str) -> bool) -> Vec<String> {
    let mut cells = Vec::new();
    let (mut meant, mut in_body) = (false, false);
    for line in page.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            meant = is_meant(heading);
        }
        match line.strip_prefix("| ") {
            Some(row) if in_body && meant => cells.extend(row.split(" |").next().map(str::to_owned)),
            Some(_) => {}
            None => in_body = line.starts_with("|--"),
        }
    }
    cells
}

#[test]
fn the_page_of_terms_has_no_more_than_a_newcomer_can_learn_and_each_once() {
    let terms = first_cells(&page(), |heading| heading != "Retired words");
    let names: Vec<&str> = terms.iter().flat_map(|term| term.split(", ")).collect();
    let different: BTreeSet<&str> = names.iter().copied().collect();
    assert!(terms.len() > 30 && terms.len() <= MOST_TERMS, "{} terms", terms.len());
    assert_eq!(different.len(), names.len(), "a term stands twice: {names:?}");
}
