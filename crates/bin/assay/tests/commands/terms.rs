//! One word for one thing: the page of terms.

use std::collections::BTreeSet;

use crate::support::{read, root};

/// Most terms that a newcomer is asked to learn.
const MOST_TERMS: usize = 60;

#[test]
fn the_page_of_terms_has_no_more_than_a_newcomer_can_learn_and_each_once() {
    let page = read(&root().join("docs/reference/terms.md"));
    let in_use = page.split("\n## Retired words").next().unwrap_or_default();
    let mut terms = Vec::new();
    let mut in_body = false;
    for line in in_use.lines() {
        match line.strip_prefix("| ") {
            Some(row) if in_body => terms.extend(row.split(" |").next()),
            Some(_) => {}
            None => in_body = line.starts_with("|--"),
        }
    }
    let names: Vec<&str> = terms.iter().flat_map(|term| term.split(", ")).collect();
    let different: BTreeSet<&str> = names.iter().copied().collect();
    assert!(terms.len() > 30 && terms.len() <= MOST_TERMS, "{} terms", terms.len());
    assert_eq!(different.len(), names.len(), "a term stands twice: {names:?}");
}
