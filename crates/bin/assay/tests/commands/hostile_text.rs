//! Where text is shown, it does nothing: on a terminal, and on a page.

use std::fs::File;
use std::io::Read;
use std::os::fd::FromRawFd;

use crate::support::Assay;

/// Does something where it is shown.
pub fn is_active(c: char) -> bool {
    (c.is_control() && !matches!(c, '\n' | '\t'))
        || matches!(c, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// What a command writes to a terminal, with line ends as they were before it.
pub fn on_terminal(assay: &Assay, arguments: &[&str]) -> String {
    let (mut master, mut slave) = (0, 0);
    let none = std::ptr::null_mut();
    // SAFETY: both are written before they are read, and the others may be null.
    let opened = unsafe { libc::openpty(&mut master, &mut slave, none, std::ptr::null(), std::ptr::null()) };
    assert_eq!(opened, 0, "no terminal");
    // SAFETY: they were just opened, and nobody else has them.
    let [mut master, slave] = [master, slave].map(|fd| unsafe { File::from_raw_fd(fd) });
    let mut command = assay.command(arguments);
    let mut child = command.stdout(slave).env_remove("NO_COLOR").spawn().expect("the binary starts");
    drop(command);
    let mut bytes = Vec::new();
    // A terminal that nobody has any more ends with an error.
    let _ = master.read_to_end(&mut bytes);
    child.wait().expect("is our child");
    String::from_utf8_lossy(&bytes).replace("\r\n", "\n")
}

/// Text for a terminal is tame: no line of it is one of the texts', nothing steers or colours.
#[track_caller]
pub fn assert_tame(text: &str, case: &str) {
    assert!(!text.contains(is_active), "{case}: {text:?}");
    assert!(!text.lines().any(|line| line.starts_with("error: forged")), "{case}: {text:?}");
}

/// Without the styles that are ours.
pub fn without_styles(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once('m').map_or(part, |(_, rest)| rest))
}

/// Nothing of the texts is markup of a page.
#[track_caller]
pub fn assert_page(page: &str, case: &str) {
    for markup in ["<script>alert", "<img src=x", "</details></summary>&lt;", "href=\"javascript"] {
        assert!(!page.contains(markup), "{case}: {markup}");
    }
    assert!(!page.contains(is_active), "{case}");
}
