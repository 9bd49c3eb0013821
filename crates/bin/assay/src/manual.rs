//! Manual pages: the text of `--help`, of every command, in the form that `man` reads.
//!
//! *Does not:* hold any text of its own, but for the list of related pages.

use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, roman};

/// The manual that the pages belong to, as `man` shows it at the top of each.
const MANUAL: &str = "Assay";

/// Preamble of each section that is rendered by itself: the notation of an apostrophe.
const PREAMBLE: &str = ".ie \\n(.g .ds Aq \\(aq\n.el .ds Aq '\n";

/// A page: the name of its file and its text in roff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManualPage {
    /// `assay-lab-show.1`.
    pub file: String,
    /// Roff with the `man` macros.
    pub text: String,
}

/// All pages of a command line: one for `assay`, and one for each command that `--help` shows.
pub fn pages(definition: clap::Command) -> std::io::Result<Vec<ManualPage>> {
    let top = complete(definition);
    let mut pages = Vec::new();
    collect(&top, None, &mut pages)?;
    Ok(pages)
}

/// The command line with all that clap adds, but without the command `help`, which has no page.
fn complete(definition: clap::Command) -> clap::Command {
    let mut top = definition.disable_help_subcommand(true);
    top.build();
    top
}

fn collect(command: &clap::Command, above: Option<&str>, pages: &mut Vec<ManualPage>) -> std::io::Result<()> {
    let name = page_name(command);
    pages.push(page(command, above)?);
    for inner in visible(command) {
        collect(inner, Some(&name), pages)?;
    }
    Ok(())
}

fn visible(command: &clap::Command) -> impl Iterator<Item = &clap::Command> {
    command.get_subcommands().filter(|inner| !inner.is_hide_set())
}

/// `assay-lab-show`.
fn page_name(command: &clap::Command) -> String {
    command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned()
}

fn page(command: &clap::Command, above: Option<&str>) -> std::io::Result<ManualPage> {
    let source = format!("assay {}", env!("CARGO_PKG_VERSION"));
    // The section of commands, if there is one, lists pages with their section.
    let man = Man::new(command.clone()).source(source).manual(MANUAL);
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    man.render_synopsis_section(&mut text)?;
    man.render_description_section(&mut text)?;
    man.render_options_section(&mut text)?;
    if visible(command).next().is_some() {
        man.render_subcommands_section(&mut text)?;
    }
    let mut rest = Roff::new();
    after_help(&mut rest, command);
    related(&mut rest, command, above);
    rest.to_writer(&mut text)?;
    let text = PREAMBLE.to_owned() + &String::from_utf8_lossy(&text).replace(PREAMBLE, "");
    Ok(ManualPage { file: format!("{}.1", page_name(command)), text })
}

/// Examples and exit codes: what `--help` ends with. A paragraph whose first line ends in a colon has that line as heading. Lines
/// that stand further in are set in columns, and stay as they are.
fn after_help(page: &mut Roff, command: &clap::Command) {
    let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    for paragraph in text.split("\n\n").filter(|paragraph| !paragraph.trim().is_empty()) {
        let mut lines: Vec<&str> = paragraph.lines().collect();
        match lines[0].strip_suffix(':') {
            Some(heading) => {
                page.control("SH", [heading.to_uppercase().as_str()]);
                lines.remove(0);
            }
            None => {
                page.control("PP", []);
            }
        }
        let is_set = lines.iter().any(|line| line.starts_with(' '));
        if is_set {
            page.control("nf", []);
        }
        for line in lines {
            page.text([roman(line)]);
        }
        if is_set {
            page.control("fi", []);
        }
    }
}

/// The pages above and beside this one. Those below are in the section of commands.
fn related(page: &mut Roff, command: &clap::Command, above: Option<&str>) {
    let mut names: Vec<String> = above.map(str::to_owned).into_iter().collect();
    if above.is_none() {
        names.extend(visible(command).map(page_name));
    }
    page.control("SH", ["SEE ALSO"]);
    let last = names.len().saturating_sub(1);
    let listed = names.iter().enumerate().flat_map(|(index, name)| {
        let end = if index == last { "(1)" } else { "(1), " };
        [bold(name.as_str()), roman(end)]
    });
    page.text(listed.collect::<Vec<Inline>>());
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::Cli;

    #[test]
    fn every_command_has_a_page_that_names_all_its_flags() {
        let pages = pages(Cli::command()).unwrap();
        let top = complete(Cli::command());
        let mut commands = vec![&top];
        let mut count = 0;
        while let Some(command) = commands.pop() {
            commands.extend(visible(command));
            count += 1;
            let file = format!("{}.1", page_name(command));
            let page = pages.iter().find(|page| page.file == file).unwrap_or_else(|| panic!("no {file}"));
            for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
                let Some(long) = argument.get_long() else { continue };
                let written = format!("\\-\\-{}", long.replace('-', "\\-"));
                assert!(page.text.contains(&written), "{file} has no --{long}");
            }
        }
        assert_eq!(count, pages.len());
    }

    #[test]
    fn examples_keep_their_lines_and_related_pages_are_named() {
        let pages = pages(Cli::command()).unwrap();
        let lab = &pages.iter().find(|page| page.file == "assay-lab.1").unwrap().text;
        assert!(lab.contains(".SH EXAMPLES\n.nf\n"), "{lab}");
        assert!(lab.contains("\\fBassay\\fR(1)"), "{lab}");
        assert!(!pages.iter().any(|page| page.file.contains("role")), "hidden commands have no page");
    }
}
