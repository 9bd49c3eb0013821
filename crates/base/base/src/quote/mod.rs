//! Text of others, as each kind of output can show it: in a message or on a terminal, on a page, in CSV, in Markdown.
//!
//! Names of files, URLs, titles, fields of heads and lines of logs are chosen by others. They must be seen as they are, and do nothing
//! where they are shown: steer a terminal, begin a line that looks like one of ours, become a formula, a link, markup or a mention.
//!
//! *Does not:* escape for HTML, JSON or XML, whose writers do that for all text; or write anything anywhere.

pub mod csv;
pub mod line;
pub mod markdown;
pub mod visible;

/// Text that does something in one output or another, for the tests of all of them.
#[doc(hidden)]
pub const HOSTILE: [&str; 32] = [
    "\u{1b}[2J\u{1b}]0;owned\u{7}",
    "\u{1b}[31mred\u{1b}[0m",
    "\u{1b}[8mhidden",
    "\u{9b}2J\u{9d}0;owned\u{9c}",
    "user\u{202e}txt.exe",
    "\u{2067}turned\u{2069}\u{200f}",
    "one\nerror: forged",
    "one\r\nerror: forged",
    "one\rerror: forged",
    "\u{2028}error: forged",
    "\0\u{8}\u{7f}",
    "=cmd|' /C calc'!A0",
    "+1+1",
    "@SUM(A1)",
    "-1+1",
    "\t=1+1",
    "a;=1+1",
    "\"=1+1",
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "`code` ``more``",
    "a|b||c",
    "[x](javascript:alert(1))",
    "![x](http://a.example/x.png)",
    "@name and @some/team",
    "http://a.example/x https://b.example www.c.example",
    "mailto:a@b.example #1 owner/repo#2",
    "{{ 7*7 }} {% raw %} ${x} %s",
    "a\\\"b\\nc\\",
    "# heading\n- item\n---",
    "</details></summary>&lt;&amp;",
    "a{b=\"c\",d='e'} 1\n# TYPE x counter",
];
