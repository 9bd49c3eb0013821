//! The size of a cache, as it is typed.

use assay_lab::units;

/// Bytes, or objects where these have no sizes.
#[derive(Debug, Clone)]
pub struct CacheSize {
    pub size: u64,
    /// The size as typed.
    pub typed: String,
}

impl CacheSize {
    /// Reads `128MB`, or a number of bytes or objects.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text.parse().or_else(|_| units::size(text)).map_err(|error| error.to_string())? {
            0 => Err("a cache of nothing holds nothing; write a size above 0, like 128MB".into()),
            size => Ok(Self { size, typed: text.to_owned() }),
        }
    }

    /// True if it was typed as a number of bytes.
    pub fn has_unit(&self) -> bool {
        self.typed.parse::<u64>().is_err()
    }
}
