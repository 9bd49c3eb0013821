//! The site, as far as it can be checked without building it: the commands of its gallery, and the checker of its links.

use std::path::Path;
use std::process::{Command, Output};

use crate::support::{Assay, program, root};

/// A script of the site with its arguments. Without Python the test says that it is skipped.
fn script(name: &str, arguments: &[&Path]) -> Option<Output> {
    let python = program(&["python3"], "python3")?;
    let mut command = Command::new(python);
    command.arg("-B").arg(root().join("scripts/site").join(name)).args(arguments);
    Some(command.output().expect("it starts"))
}

/// The words of a line, with what is between quotes as one word, up to what belongs to the shell.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '\'' => quoted = !quoted,
            '>' | '&' | '|' if !quoted => break,
            ' ' if !quoted => words.push(String::new()),
            _ => words.last_mut().expect("there is one").push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[test]
fn the_commands_of_the_gallery_exist() {
    let Some(output) = script("gallery.py", &[Path::new("--shown")]) else { return };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (assay, mut tried) = (Assay::new(), 0);
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let Some((_, command)) = line.split_once("assay ") else { continue };
        let words = words(command);
        // An unknown flag is found before help is printed.
        let arguments: Vec<&str> = words.iter().map(String::as_str).chain(["--help"]).collect();
        assay.run(&arguments).exits(0);
        tried += 1;
    }
    assert!(tried >= 12, "the gallery has lost its commands: {tried}");
}

#[test]
fn a_dead_link_a_missing_place_and_what_loads_from_elsewhere_are_found() {
    let site = tempfile::tempdir().expect("a temporary directory");
    let write =
        |name: &str, text: &str| std::fs::write(site.path().join(name), text).expect("a writable directory");
    write("a.html", "<h1 id=top>A</h1><a href='b.html#there'>b</a><a href='#top'>up</a><img src='p.png'>");
    write("b.html", "<h2 id=there>B</h2><a href='https://example.org/'>elsewhere</a>");
    write("p.png", "");
    let complaints = |site: &Path| {
        let output = script("links.py", &[site])?;
        Some((output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned()))
    };
    let Some(sound) = complaints(site.path()) else { return };
    assert_eq!(sound, (true, String::new()));
    for (page, complaint) in [
        ("<a href='c.html'>c</a>", "wrong.html: there is no c.html"),
        ("<a href='b.html#nowhere'>b</a>", "wrong.html: b.html#nowhere has no such place"),
        ("<img src='q.png'>", "wrong.html: there is no q.png"),
        ("<script src='https://example.org/x.js'></script>", "wrong.html: loads https://example.org/x.js"),
        ("<style>@font-face { src: url(//example.org/f) }</style>", "wrong.html: loads //example.org/f"),
    ] {
        write("wrong.html", page);
        let (succeeded, said) = complaints(site.path()).expect("Python is there");
        assert!(!succeeded && said.trim() == complaint, "{said}");
    }
}
