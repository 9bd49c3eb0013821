//! The shell steps of the action for GitHub and of the component for GitLab, as they are written.

use std::collections::BTreeMap;

use crate::support::{read, root};

/// A step that runs a shell.
#[derive(Debug, Default)]
pub struct Step {
    pub name: String,
    pub env: BTreeMap<String, String>,
    pub script: String,
}

/// How far a line stands in.
fn depth(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// The lines below a key that stand further in than it, without what they all stand in.
fn block<'a>(lines: &mut std::iter::Peekable<impl Iterator<Item = &'a str>>, key_depth: usize) -> String {
    let mut text = String::new();
    let mut inner = None;
    while let Some(line) = lines.next_if(|line| line.is_empty() || depth(line) > key_depth) {
        let inner = *inner.get_or_insert(depth(line));
        text += line.get(inner..).unwrap_or_default();
        text.push('\n');
    }
    text.trim_end().to_owned()
}

/// The default of each input, by name.
pub fn inputs(text: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut name = String::new();
    for line in text.lines().skip_while(|line| line.trim() != "inputs:").skip(1) {
        match line.trim().split_once(": ") {
            Some(("default", value)) => drop(found.insert(name.clone(), value.trim_matches('"').to_owned())),
            None if line.ends_with(':') => name = line.trim().trim_end_matches(':').to_owned(),
            _ => {}
        }
    }
    found
}

/// The shell steps of the action, with expressions replaced by values.
pub fn steps_of_action(given: &BTreeMap<&str, &str>) -> Vec<Step> {
    let text = read(&root().join("contrib/ci/github/action.yml"));
    let defaults = inputs(&text);
    let value = |expression: &str| {
        let input = expression.strip_prefix("inputs.");
        let default = || input.and_then(|name| defaults.get(name)).cloned().unwrap_or_default();
        given.get(expression).map_or_else(default, |value| (*value).to_owned())
    };
    let mut steps: Vec<Step> = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let Some((key, rest)) = line.trim().trim_start_matches("- ").split_once(':') else { continue };
        match (key, steps.last_mut()) {
            ("name", _) if line.trim().starts_with("- ") => {
                steps.push(Step { name: rest.trim().into(), ..Step::default() });
            }
            ("run", Some(step)) => step.script = block(&mut lines, depth(line)),
            (name, Some(step)) if name == name.to_uppercase() => {
                let expression = rest.trim().trim_start_matches("${{ ").trim_end_matches(" }}");
                step.env.insert(name.into(), value(expression));
            }
            _ => {}
        }
    }
    steps.retain(|step| !step.script.is_empty());
    steps
}

/// The script of the component.
pub fn scripts_of_component() -> Vec<String> {
    let text = read(&root().join("contrib/ci/gitlab/templates/guard.yml"));
    let mut lines = text.lines().skip_while(|line| line.trim() != "script:").skip(1).peekable();
    let mut scripts = Vec::new();
    while lines.next_if(|line| line.trim() == "- |").is_some() {
        scripts.push(block(&mut lines, 4));
    }
    scripts
}
