//! Settings of a link, and their notation.
//!
//! On a command line, a link is `delay=40ms,jitter=2ms,loss=0.05%,rate=10Mbit/s,queue=100kB`, each part at most once; in TOML
//! and JSON it is that text or a table of such texts (`delay = "40ms"`). Every number has its unit.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Default length, in bytes, of the queue for a rate.
pub const DEFAULT_QUEUE_BYTES: u64 = 100_000;
/// Upper bound on delays; the longest wait of [`super::probe`] allows for it.
const MAX_DELAY: Duration = Duration::from_secs(60);
/// Bounds on rates, in bits per second: a packet must pass within seconds, and no user-space link is faster.
const RATES: (f64, f64) = (1e3, 1e12);
/// Lower bound on queues, in bytes: one packet.
const MIN_QUEUE: f64 = 1500.0;
const KEYS: [&str; 5] = ["delay", "jitter", "loss", "rate", "queue"];
const EXAMPLE: &str = "write a link like delay=40ms,jitter=2ms,loss=0.05%,rate=10Mbit/s,queue=100kB";

/// Settings of a link, for both directions. The default has no effect on packets.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LinkSettings {
    pub delay: Duration,
    /// Upper bound on the uniform deviation from `delay`; packets keep their order.
    pub jitter: Duration,
    /// Share of packets that are lost, from 0 to 1; a seed selects them.
    pub loss: f64,
    /// Rate in bits per second; none for no limit.
    pub rate_bits_per_s: Option<u64>,
    /// Length of the drop-tail queue for the rate; none for [`DEFAULT_QUEUE_BYTES`].
    pub queue_bytes: Option<u64>,
}

/// Invalid settings.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SettingsError {
    pub message: String,
}

fn invalid<T>(message: String) -> Result<T, SettingsError> {
    Err(SettingsError { message })
}

impl LinkSettings {
    /// Length of the queue in bytes.
    pub fn queue_bytes(&self) -> u64 {
        self.queue_bytes.unwrap_or(DEFAULT_QUEUE_BYTES)
    }

    fn from_parts<'a>(parts: impl Iterator<Item = (&'a str, &'a str)>) -> Result<Self, SettingsError> {
        let mut settings = Self::default();
        let mut keys: Vec<&str> = Vec::new();
        for (key, text) in parts {
            let text = text.trim();
            match key {
                "delay" => settings.delay = duration(key, text)?,
                "jitter" => settings.jitter = duration(key, text)?,
                "loss" => settings.loss = share(text)?,
                "rate" => settings.rate_bits_per_s = Some(rate(text)?),
                "queue" => settings.queue_bytes = Some(queue(text)?),
                other => {
                    let keys = KEYS.join(", ");
                    return invalid(format!("a link has no `{other}`; it has {keys}: {EXAMPLE}"));
                }
            }
            if keys.contains(&key) {
                return invalid(format!("`{key}` is said twice; {EXAMPLE}"));
            }
            keys.push(key);
        }
        settings.check().map(|()| settings)
    }

    /// The settings, if they are valid.
    pub fn checked(self) -> Result<Self, SettingsError> {
        self.to_string().parse()
    }

    fn check(&self) -> Result<(), SettingsError> {
        if self.jitter > self.delay {
            return invalid(format!(
                "a jitter of {} cannot be taken from a delay of {}; make the delay at least as long",
                format_duration(self.jitter),
                format_duration(self.delay)
            ));
        }
        if self.queue_bytes.is_some() && self.rate_bits_per_s.is_none() {
            return invalid("a queue without a rate never fills; name a rate, or leave the queue out".into());
        }
        Ok(())
    }

    /// Names and texts of the settings that are not the default.
    fn parts(&self) -> Vec<(&'static str, String)> {
        let mut parts = Vec::new();
        let is_plain = *self == Self::default();
        if !self.delay.is_zero() || is_plain {
            parts.push(("delay", format_duration(self.delay)));
        }
        if !self.jitter.is_zero() {
            parts.push(("jitter", format_duration(self.jitter)));
        }
        if self.loss > 0.0 {
            parts.push(("loss", format_share(self.loss)));
        }
        parts.extend(self.rate_bits_per_s.map(|rate| ("rate", format_scaled(rate, "bit/s"))));
        parts.extend(self.queue_bytes.map(|bytes| ("queue", format_scaled(bytes, "B"))));
        parts
    }
}

impl FromStr for LinkSettings {
    type Err = SettingsError;

    fn from_str(text: &str) -> Result<Self, SettingsError> {
        let mut parts = Vec::new();
        for part in text.split(',') {
            match part.split_once('=') {
                Some((key, value)) => parts.push((key.trim(), value)),
                None if part.trim().is_empty() => {
                    return invalid(format!("a part is missing in `{text}`; {EXAMPLE}"));
                }
                None => return invalid(format!("`{}` has no value; {EXAMPLE}", part.trim())),
            }
        }
        Self::from_parts(parts.into_iter())
    }
}

impl fmt::Display for LinkSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self.parts().iter().map(|(key, value)| format!("{key}={value}")).collect();
        f.write_str(&parts.join(","))
    }
}

impl Serialize for LinkSettings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let parts = self.parts();
        let mut map = serializer.serialize_map(Some(parts.len()))?;
        for (key, value) in &parts {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for LinkSettings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SettingsVisitor;
        impl<'de> Visitor<'de> for SettingsVisitor {
            type Value = LinkSettings;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a link, as a text like \"delay=40ms,loss=0.05%\" or a table of texts")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<LinkSettings, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<LinkSettings, A::Error> {
                let mut parts: Vec<(String, String)> = Vec::new();
                while let Some(part) = map.next_entry()? {
                    parts.push(part);
                }
                LinkSettings::from_parts(parts.iter().map(|(key, value)| (key.as_str(), value.as_str())))
                    .map_err(A::Error::custom)
            }
        }
        deserializer.deserialize_any(SettingsVisitor)
    }
}

/// Splits `12.5MB` into its number and its unit.
fn split<'a>(key: &str, text: &'a str, examples: &str) -> Result<(f64, &'a str), SettingsError> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    match digits.parse::<f64>() {
        Ok(number) => Ok((number, unit.trim())),
        Err(_) => invalid(format!("{key}: `{text}` does not begin with a number; {examples}")),
    }
}

fn duration(key: &str, text: &str) -> Result<Duration, SettingsError> {
    let examples = "write it like 40ms, 1.5s or 500us";
    let (number, unit) = split(key, text, examples)?;
    let factor_s = match unit {
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "" if number == 0.0 => 1.0,
        "" => return invalid(format!("{key}: `{text}` has no unit; write {text}ms for milliseconds")),
        other => return invalid(format!("{key}: `{other}` is not a unit of a link's time; {examples}")),
    };
    match Duration::try_from_secs_f64(number * factor_s) {
        Ok(duration) if duration <= MAX_DELAY => Ok(duration),
        _ => invalid(format!("{key}: `{text}` is longer than {}", format_duration(MAX_DELAY))),
    }
}

fn share(text: &str) -> Result<f64, SettingsError> {
    let examples = "write it like 0.05%";
    let (number, unit) = split("loss", text, examples)?;
    match unit {
        "%" if number < 100.0 => Ok(number / 100.0),
        "%" => invalid(format!("loss: a link that loses {text} lets nothing pass; {examples}")),
        "" if number == 0.0 => Ok(0.0),
        "" => invalid(format!("loss: `{text}` has no unit; write {text}% for percent")),
        other => invalid(format!("loss: `{other}` is not %; {examples}")),
    }
}

fn rate(text: &str) -> Result<u64, SettingsError> {
    let examples = "write it like 10Mbit/s, 256kbit/s or 1Gbit/s";
    let (number, unit) = split("rate", text, examples)?;
    let factor = match unit.strip_suffix("/s").unwrap_or(unit) {
        "bit" => 1.0,
        "kbit" => 1e3,
        "Mbit" => 1e6,
        "Gbit" => 1e9,
        "B" | "kB" | "KB" | "MB" | "GB" => {
            return invalid(format!(
                "rate: `{text}` is in bytes, and links are measured in bits; {examples}"
            ));
        }
        "" => return invalid(format!("rate: `{text}` has no unit; {examples}")),
        other => return invalid(format!("rate: `{other}` is not a unit of rate; {examples}")),
    };
    let bits_per_s = number * factor;
    if bits_per_s < RATES.0 || bits_per_s > RATES.1 {
        return invalid(format!("rate: `{text}` is not between 1kbit/s and 1000Gbit/s"));
    }
    Ok(bits_per_s.round() as u64)
}

fn queue(text: &str) -> Result<u64, SettingsError> {
    let examples = "write it like 100kB or 64KiB";
    let (number, unit) = split("queue", text, examples)?;
    let factor = match unit {
        "B" => 1.0,
        "kB" => 1e3,
        "MB" => 1e6,
        "KiB" => 1024.0,
        "MiB" => 1_048_576.0,
        "KB" => {
            return invalid(format!("queue: `{text}`: write kB for 1000 bytes or KiB for 1024; {examples}"));
        }
        "" => return invalid(format!("queue: `{text}` has no unit; {examples}")),
        other => return invalid(format!("queue: `{other}` is not a unit of size; {examples}")),
    };
    let bytes = number * factor;
    if !(MIN_QUEUE..=1e9).contains(&bytes) {
        return invalid(format!("queue: `{text}` is not between 1500B (one packet) and 1000MB"));
    }
    Ok(bytes.round() as u64)
}

fn format_duration(duration: Duration) -> String {
    let ns = duration.as_nanos();
    match ns {
        0 => "0ms".into(),
        _ if ns.is_multiple_of(1_000_000_000) => format!("{}s", ns / 1_000_000_000),
        _ if ns.is_multiple_of(1_000_000) => format!("{}ms", ns / 1_000_000),
        _ if ns.is_multiple_of(1000) => format!("{}us", ns / 1000),
        _ => format!("{}.{:03}us", ns / 1000, ns % 1000),
    }
}

/// The shortest percentage that reads back as the same share.
fn format_share(share: f64) -> String {
    let percent = share * 100.0;
    let written = (0..17).map(|digits| format!("{percent:.digits$}"));
    let exact =
        written.into_iter().find(|text| text.parse::<f64>().is_ok_and(|value| value / 100.0 == share));
    format!("{}%", exact.unwrap_or_else(|| percent.to_string()))
}

fn format_scaled(value: u64, unit: &str) -> String {
    let scales = [("G", 1_000_000_000), ("M", 1_000_000), ("k", 1000)];
    // Gigabytes are no unit of queues.
    let fitting = scales.into_iter().filter(|(name, _)| unit != "B" || *name != "G");
    let mut fitting = fitting.filter(|(_, scale)| value >= *scale && value.is_multiple_of(*scale));
    match fitting.next() {
        Some((name, scale)) => format!("{}{name}{unit}", value / scale),
        None => format!("{value}{unit}"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> LinkSettings {
        text.parse().unwrap()
    }

    fn check_available(text: &str) -> String {
        text.parse::<LinkSettings>().unwrap_err().to_string()
    }

    #[test]
    fn everything_that_can_be_said_is_understood() {
        let all = read("delay=40ms, jitter=2ms,loss=0.05%,rate=10Mbit/s,queue=64KiB");
        let expected = LinkSettings {
            delay: Duration::from_millis(40),
            jitter: Duration::from_millis(2),
            loss: 0.0005,
            rate_bits_per_s: Some(10_000_000),
            queue_bytes: Some(65_536),
        };
        assert_eq!(all, expected);
        assert_eq!(read("delay=0"), LinkSettings::default());
        assert_eq!(read("rate=1.5Mbit"), read("rate=1500kbit/s"));
        assert_eq!(read("delay=0.5ms").delay, Duration::from_micros(500));
    }

    #[test]
    fn what_is_wrong_says_what_to_write() {
        for (text, words) in [
            ("", "a part is missing"),
            ("delay", "`delay` has no value"),
            ("latency=4ms", "a link has no `latency`; it has delay, jitter"),
            ("delay=40", "write 40ms for milliseconds"),
            ("delay=40h", "`h` is not a unit"),
            ("delay=1000s", "longer than 60s"),
            ("delay=x", "does not begin with a number"),
            ("delay=1ms,delay=2ms", "`delay` is said twice"),
            ("jitter=2ms", "cannot be taken from a delay of 0ms"),
            ("loss=0.05", "write 0.05% for percent"),
            ("loss=100%", "lets nothing pass"),
            ("rate=10MB/s", "is in bytes"),
            ("rate=10", "has no unit"),
            ("rate=1bit/s", "not between"),
            ("queue=100kB", "a queue without a rate"),
            ("rate=1Mbit/s,queue=100KB", "write kB for 1000 bytes or KiB"),
            ("rate=1Mbit/s,queue=10B", "one packet"),
        ] {
            let message = check_available(text);
            assert!(message.contains(words), "{text}: {message}");
        }
    }

    #[test]
    fn in_toml_it_is_a_text_or_a_table_of_texts() {
        #[derive(Deserialize)]
        struct File {
            link: LinkSettings,
        }
        let link = |text: &str| toml::from_str::<File>(text).map(|file| file.link);
        let expected = read("delay=40ms,loss=0.05%");
        assert_eq!(link("link = \"delay=40ms,loss=0.05%\"").unwrap(), expected);
        assert_eq!(link("[link]\ndelay = \"40ms\"\nloss = \"0.05%\"").unwrap(), expected);
        let error = link("[link]\ndelay = \"40\"").unwrap_err().to_string();
        assert!(error.contains("write 40ms"), "{error}");
        assert!(link("[link]\ndelay = 40").is_err() && link("link = 40").is_err());
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(
            delay_us in 0_u64..1_000_000, jitter_us in 0_u64..1_000_000, loss in 0.0_f64..0.99,
            rate in prop::option::of(1000_u64..10_000_000_000), queue in prop::option::of(1500_u64..1_000_000_000),
        ) {
            let settings = LinkSettings {
                delay: Duration::from_micros(delay_us),
                jitter: Duration::from_micros(jitter_us.min(delay_us)),
                loss,
                rate_bits_per_s: rate,
                queue_bytes: queue.filter(|_| rate.is_some()),
            };
            // Every share of percent has a shortest text, which may stand for a neighbour of the share itself.
            let once = read(&settings.to_string());
            prop_assert!((once.loss - settings.loss).abs() < 1e-15);
            prop_assert_eq!(once, LinkSettings { loss: once.loss, ..settings });
            prop_assert_eq!(read(&once.to_string()), once);
            let json = serde_json::to_string(&once).unwrap();
            prop_assert_eq!(serde_json::from_str::<LinkSettings>(&json).unwrap(), once);
        }

        #[test]
        fn no_text_is_too_odd_for_a_result(text in "\\PC*") {
            let _ = text.parse::<LinkSettings>();
        }
    }
}
