//! Where does a proxy write down each request, and what stands in a line of it?

use serde::Deserialize;

/// A proxy's own access log.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct AccessLog {
    /// The file, below the work directory.
    pub path: String,
    /// What stands in a line: `{field}` for each field, and what stands between them. More blanks than one are as one.
    pub format: String,
}

/// Fields of a line, and what they are.
pub const FIELDS: [(&str, &str); 14] = [
    ("time-s", "when it ended or began, in seconds since 1970"),
    ("duration-s", "how long it took, in seconds"),
    ("duration-ms", "the same in milliseconds"),
    ("duration-us", "the same in microseconds"),
    ("client", "address of the client"),
    ("outcome", "hit or miss, in the proxy's own words"),
    ("status", "status of the answer"),
    ("bytes", "bytes of the answer, as the proxy counts them"),
    ("method", "method of the request"),
    ("url", "URL of the request, with its host"),
    ("host", "host of the request"),
    ("path", "path and query of the request"),
    ("origin", "who was asked for it"),
    ("other", "anything without a blank"),
];

impl AccessLog {
    /// What is wrong with its format.
    pub(super) fn check(&self) -> Result<(), String> {
        let mut rest = self.format.as_str();
        let mut seen = Vec::new();
        while let Some((_, after)) = rest.split_once('{') {
            let Some((field, behind)) = after.split_once('}') else {
                return Err(format!("`{{{after}` has no end; a field is written `{{status}}`"));
            };
            if !FIELDS.iter().any(|(name, _)| *name == field) {
                let names: Vec<&str> = FIELDS.iter().map(|(name, _)| *name).collect();
                return Err(format!("`{{{field}}}` is no field of a line; there are {}", names.join(", ")));
            }
            if field != "other" && seen.contains(&field) {
                return Err(format!("`{{{field}}}` stands in it twice"));
            }
            if behind.starts_with('{') {
                return Err(format!("nothing stands between `{{{field}}}` and the field after it"));
            }
            seen.push(field);
            rest = behind;
        }
        let has = |field: &str| seen.contains(&field);
        let asked = has("url") || has("path");
        if has("time-s") && has("status") && asked {
            Ok(())
        } else {
            Err("must have at least {time-s}, {status}, and {url} or {path}".into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(format: &str) -> Result<(), String> {
        AccessLog { path: "access.log".into(), format: format.into() }.check()
    }

    #[test]
    fn a_format_names_known_fields_with_something_between_them() {
        assert_eq!(
            check("{time-s} {duration-ms} {outcome}/{status} {bytes} {method} {url} {other} {other}"),
            Ok(())
        );
        assert!(check("{time-s} {code} {url}").unwrap_err().contains("`{code}` is no field"));
        assert!(check("{time-s} {status}{url}").unwrap_err().contains("nothing stands between"));
        assert!(check("{time-s} {status} {url").unwrap_err().contains("has no end"));
        assert!(check("{time-s} {status} {status} {path}").unwrap_err().contains("twice"));
        assert!(check("{time-s} {status}").unwrap_err().contains("{url} or {path}"));
        assert!(check("").is_err());
    }
}
