//! Where a proxy writes down each request, and what stands in a line of it.

use assay_logs::format::{Dialect, Format};
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

pub use assay_logs::format::ASSAY_FIELDS as FIELDS;

impl AccessLog {
    /// What is wrong with its format.
    pub(super) fn check(&self) -> Result<(), String> {
        Format::compile(Dialect::Assay, &self.format).map(drop).map_err(|error| error.why)
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
        assert!(check("{time-s} {status}").unwrap_err().contains("{url}, {path}"));
        assert!(check("").is_err());
    }
}
