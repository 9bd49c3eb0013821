//! WebStone's own files: file lists, and the settings of a testbed.
//!
//! A line of a file list is a path, a weight, and after `#` its size in bytes, or a comment. A testbed is a shell script of
//! assignments: those that say how to run are taken, those that say how to copy programs to other machines are not.

use assay_cluster::dispatch::ClassId;
use assay_cluster::simulate::{Service, ServiceTimeLaw};
use thiserror::Error;

/// WebStone's kilobyte: its `file5k.html` has 5,125 bytes.
const KILO: u64 = 1025;
/// WebStone's megabyte: `file5m.html` has 5,248,000.
const MEGA: u64 = 1024 * KILO;
/// Largest file that a name can request.
const MOST_BYTES: u64 = 1 << 40;

/// A file that is not WebStone's.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line}: {reason}\n{line:>5} | {text}")]
pub struct WebstoneError {
    /// Line number, from 1.
    pub line: usize,
    pub reason: String,
    pub text: String,
}

/// The requested documents, and how often.
#[derive(Debug, Clone, PartialEq)]
pub struct FileList {
    pub services: Vec<Service>,
    pub weights: Vec<f64>,
}

/// Size in a name of WebStone's: `/file500.html`, `/file5k.html`, `/file5m.html`.
pub fn size_by_name(path: &str) -> Option<u64> {
    let file = path.split('?').next()?.rsplit('/').next()?;
    let (name, _) = file.split_once('.')?;
    let name = name.strip_prefix("file")?;
    let end = name.find(|c: char| !c.is_ascii_digit()).unwrap_or(name.len());
    let (digits, rest) = name.split_at(end);
    let (unit, copy) = rest.split_once(['-', '_']).map_or((rest, None), |(unit, copy)| (unit, Some(copy)));
    if copy.is_some_and(|copy| copy.is_empty() || !copy.bytes().all(|byte| byte.is_ascii_digit())) {
        return None;
    }
    let factor = match unit {
        "" => 1,
        "k" | "K" => KILO,
        "m" | "M" => MEGA,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(factor).filter(|bytes| *bytes <= MOST_BYTES)
}

/// Reads a file list.
pub fn file_list(text: &str) -> Result<FileList, WebstoneError> {
    let mut list = FileList { services: Vec::new(), weights: Vec::new() };
    for (number, line) in text.lines().enumerate() {
        let wrong =
            |reason: String| WebstoneError { line: number + 1, reason, text: line.trim_end().to_owned() };
        let (content, comment) = line.split_once('#').unwrap_or((line, ""));
        let mut tokens = content.split_whitespace();
        let Some(path) = tokens.next() else { continue };
        if !path.starts_with('/') || !path.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(wrong(format!("`{path}` is no path; a line is like `/file500.html 350 #500`")));
        }
        let weight = match tokens.next() {
            // WebStone's weights are whole; any other number means what it says.
            Some(token) => token.parse::<f64>().ok().filter(|weight| *weight >= 0.0 && weight.is_finite()),
            None => Some(1.0),
        };
        let weight = weight.ok_or_else(|| wrong(format!("the weight of {path} is no number")))?;
        if let Some(more) = tokens.next() {
            return Err(wrong(format!(
                "`{more}` is too much: a line is a path, a weight, and `#` with the size"
            )));
        }
        let size = comment.trim().parse::<u64>().ok();
        list.services.push(Service {
            name: path.to_owned(),
            path: path.to_owned(),
            class: ClassId(0),
            processor_s: 0.0,
            disk_s: 0.0,
            law: ServiceTimeLaw::Constant,
            bytes: size.unwrap_or(0),
            documents: 0,
            zipf: 0.0,
        });
        list.weights.push(weight);
    }
    match list.weights.iter().sum::<f64>() > 0.0 {
        true => Ok(list),
        false => Err(WebstoneError { line: 1, reason: "it requests nothing".into(), text: String::new() }),
    }
}

/// Settings of a testbed file that say how to run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Testbed {
    /// `ITERATIONS`.
    pub iterations: Option<u32>,
    /// `MINCLIENTS`.
    pub min_clients: Option<u32>,
    /// `MAXCLIENTS`.
    pub max_clients: Option<u32>,
    /// `CLIENTINCR`.
    pub client_increment: Option<u32>,
    /// `TIMEPERRUN`, in minutes.
    pub minutes_per_run: Option<f64>,
    /// `SERVER`.
    pub server: Option<String>,
    /// `PORTNO`.
    pub port: Option<u16>,
    /// `FIXED_RANDOM_SEED`.
    pub fixed_seed: Option<bool>,
    /// `CLIENTS`: the machines that clients are on.
    pub clients: Vec<String>,
    /// Names of settings that mean nothing here.
    pub ignored: Vec<String>,
}

/// Reads a testbed file.
pub fn testbed(text: &str) -> Result<Testbed, WebstoneError> {
    let mut found = Testbed::default();
    for (number, line) in text.lines().enumerate() {
        let content = line.trim();
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        let wrong =
            |reason: String| WebstoneError { line: number + 1, reason, text: line.trim_end().to_owned() };
        let Some((name, value)) = content.split_once('=') else {
            return Err(wrong("it is no assignment like MINCLIENTS=\"2\"".into()));
        };
        let value = unquoted(value.trim());
        let unread = |expected: &str| wrong(format!("{name}: `{value}` is no {expected}"));
        let count = || value.parse::<u32>().ok().filter(|n| *n > 0).ok_or_else(|| unread("number from 1"));
        match name.trim() {
            "ITERATIONS" => found.iterations = Some(count()?),
            "MINCLIENTS" => found.min_clients = Some(count()?),
            "MAXCLIENTS" => found.max_clients = Some(count()?),
            "CLIENTINCR" => found.client_increment = Some(count()?),
            "TIMEPERRUN" => {
                let minutes =
                    value.parse::<f64>().ok().filter(|minutes| *minutes > 0.0 && minutes.is_finite());
                found.minutes_per_run = Some(minutes.ok_or_else(|| unread("time in minutes"))?);
            }
            "SERVER" => found.server = Some(value.to_owned()),
            "PORTNO" => found.port = Some(value.parse().map_err(|_| unread("port"))?),
            "CLIENTS" => found.clients = value.split_whitespace().map(str::to_owned).collect(),
            "FIXED_RANDOM_SEED" => found.fixed_seed = Some(value.eq_ignore_ascii_case("true")),
            other => found.ignored.push(other.to_owned()),
        }
    }
    Ok(found)
}

/// A value without its quotes, and without a comment behind it.
fn unquoted(value: &str) -> &str {
    match value.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next().unwrap_or_default(),
        None => value.split('#').next().unwrap_or_default().trim(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_standard_list_is_read_as_it_stands() {
        let text = "# @(#)filelist.standard 1.3\n# Filelist for WebStone\n/file500.html 350 #500\n\
                    /file5k.html 500 #5125\n/cgi-bin/cpu_med.cgi 400 # This is the 'cpu heavy' service\n";
        let list = file_list(text).unwrap();
        assert_eq!(list.weights, [350.0, 500.0, 400.0]);
        assert_eq!(list.services.iter().map(|file| file.bytes).collect::<Vec<_>>(), [500, 5125, 0]);
        assert_eq!(list.services[2].path, "/cgi-bin/cpu_med.cgi");
        let wrong = file_list("/a 1\n/b x #3\n").unwrap_err();
        assert_eq!((wrong.line, wrong.reason.as_str()), (2, "the weight of /b is no number"));
        assert!(file_list("# nothing\n").is_err() && file_list("a 1\n").is_err());
    }

    #[test]
    fn names_say_sizes_in_webstones_units() {
        for (path, bytes) in [
            ("/file500.html", 500),
            ("/file0k.html", 0),
            ("/file5k.html", 5125),
            ("/a/file50k-17.html", 51_250),
            ("/file500k.html", 512_500),
            ("/file5m.html", 5_248_000),
        ] {
            assert_eq!(size_by_name(path), Some(bytes), "{path}");
        }
        for path in
            ["/", "/file.html", "/file5x.html", "/index.html", "/file99999999999m.html", "/file5k-x.html"]
        {
            assert_eq!(size_by_name(path), None, "{path}");
        }
    }

    #[test]
    fn a_testbed_says_how_to_run_and_the_rest_is_named() {
        let text = "# comment\nITERATIONS=\"3\"\nMINCLIENTS=\"2\"\nMAXCLIENTS=\"20\"\nCLIENTINCR=\"2\"\nTIMEPERRUN=\"5\"\n\
                    SERVER=\"192.168.0.134\"\nPORTNO=80\nCLIENTS=\"web1 web2\"\nRCP=/usr/bin/rcp\nFIXED_RANDOM_SEED=true # yes\n";
        let found = testbed(text).unwrap();
        assert_eq!((found.iterations, found.min_clients, found.max_clients), (Some(3), Some(2), Some(20)));
        assert_eq!((found.client_increment, found.minutes_per_run), (Some(2), Some(5.0)));
        assert_eq!((found.server.as_deref(), found.port), (Some("192.168.0.134"), Some(80)));
        assert_eq!(found.clients, ["web1", "web2"]);
        assert_eq!((found.fixed_seed, found.ignored), (Some(true), vec!["RCP".to_owned()]));
        assert_eq!(
            testbed("ITERATIONS=none\n").unwrap_err().reason,
            "ITERATIONS: `none` is no number from 1"
        );
        assert_eq!(testbed("\nhello\n").unwrap_err().line, 2);
    }

    proptest! {
        #[test]
        fn no_text_is_too_strange_to_be_read_or_refused(text in "[ -~\n]{0,200}") {
            let _ = (file_list(&text), testbed(&text), size_by_name(&text));
        }
    }
}
