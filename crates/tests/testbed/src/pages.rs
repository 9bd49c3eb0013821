//! Tools for tests of pages: a browser that opens them, kept texts, names that attack, and times to show.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use assay_base::random::{Rng, fold};
use assay_measurement::histogram::{Histogram, SparseHistogram};
use serde_json::Value;

use crate::{Browser, skip};

/// A Chromium to test with. None: the test is skipped.
pub fn chromium() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let found = std::env::split_paths(&path)
        .flat_map(|directory| names.map(|name| directory.join(name)))
        .find(|candidate| candidate.is_file());
    if found.is_none() {
        skip("no Chromium in PATH (apt-get install chromium)");
    }
    found
}

/// Opens a page, runs `script` in it once it is loaded, and gives back the document as it then is.
pub fn dom_of(chromium: &Path, page: &str, script: &str, extra: &[&str]) -> String {
    let probe = format!("<script>addEventListener('load', () => {{ {script} }});</script></body>");
    let (place, browser) = (tempfile::tempdir().expect("a temporary directory"), Browser::new());
    let tested = place.path().join("tested.html");
    std::fs::write(&tested, page.replacen("</body>", &probe, 1)).expect("a page is written");
    let output = browser
        .set_up(Command::new(chromium))
        .args(["--window-size=1300,2000", "--virtual-time-budget=4000"])
        .args(extra)
        .arg("--dump-dom")
        .arg(format!("file://{}", tested.display()))
        .stdin(Stdio::null())
        .output()
        .expect("Chromium starts");
    let dom = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(dom.contains("</html>"), "no page came: {}", String::from_utf8_lossy(&output.stderr));
    dom
}

/// The attributes of each chart of a document.
pub fn figures(dom: &str) -> Vec<&str> {
    dom.split("<figure class=\"chart")
        .skip(1)
        .map(|rest| rest.split('>').next().unwrap_or_default())
        .collect()
}

/// Compares with a file that is kept; `UPDATE_GOLDEN=1` rewrites it.
pub fn golden(path: &Path, text: &str) {
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, text).expect("a golden file is written");
        return;
    }
    let kept = std::fs::read_to_string(path).unwrap_or_default();
    assert!(kept == text, "{} differs; look at it after UPDATE_GOLDEN=1. Now:\n{text}", path.display());
}

/// Columns of an [`outline`].
const OUTLINE_WIDTH: usize = 140;

/// A document as text to keep: what fits on a line on one, a longer list as its first element and a digest of all others. A change of
/// any value changes it, and the line says where.
pub fn outline(document: &Value) -> String {
    let mut text = String::new();
    write_outline(document, 0, &mut text);
    text.push('\n');
    text
}

fn write_outline(value: &Value, indent: usize, out: &mut String) {
    let inner = format!("\n{:1$}", "", indent + 1);
    let whole = value.to_string();
    match value {
        Value::Object(fields) if indent + whole.len() > OUTLINE_WIDTH => {
            out.push('{');
            for (name, field) in fields {
                out.push_str(&format!("{inner}{name}: "));
                write_outline(field, indent + 1, out);
            }
            out.push('}');
        }
        Value::Array(elements) if indent + whole.len() > OUTLINE_WIDTH => {
            out.push_str(&format!("[{inner}"));
            write_outline(&elements[0], indent + 1, out);
            let others = Value::from(&elements[1..]).to_string();
            let digest = others.bytes().fold(0, |digest, byte| fold(digest, u64::from(byte)));
            out.push_str(&format!("{inner}{} more, {digest:016x}]", elements.len() - 1));
        }
        _ => out.push_str(&whole),
    }
}

/// Name with markup that an attacker could choose.
pub const HOSTILE: &str =
    "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">";

/// Times that lean to the left and have a tail, in microseconds; whole arithmetic draws them, the same on every machine.
pub fn drawn(dice: &mut Rng, count: u64, typical_us: f64) -> SparseHistogram {
    let mut histogram = Histogram::new();
    for _ in 0..count {
        let u = dice.unit();
        let tail = u * u * u * u;
        histogram.record((typical_us * (0.6 + 0.8 * u + 6.0 * tail * tail * tail)) as u64);
    }
    histogram.to_sparse()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outline_changes_with_every_value_and_says_where() {
        let list: Vec<u64> = (1000..1100).collect();
        let document = serde_json::json!({"name": "a", "times": list, "total": {"requests": 7}});
        let lines = outline(&document);
        let mut changed = document.clone();
        changed["times"][99] = 5.into();
        let other = outline(&changed);
        let different: Vec<_> = lines.lines().zip(other.lines()).filter(|(a, b)| a != b).collect();
        assert!(different.len() == 1 && different[0].0.contains("99 more, "), "{different:?}");
    }
}
