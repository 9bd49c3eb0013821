//! Flags on the requests of a log.

use assay_lab::units;
use assay_logs::size::error::ArgumentError;
use assay_logs::size::keys::pattern::Pattern;
use assay_logs::size::keys::rules::KeyRules;
use assay_logs::size::keys::{LogRule, LogRules};
use clap::Args;

/// The longest lifetime that is told from for ever, in seconds.
const LONGEST_S: u64 = u32::MAX as u64 - 1;

/// Flags for inputs that are access logs.
#[derive(Debug, Args)]
#[command(next_help_heading = "Access logs")]
pub struct RuleArgs {
    /// Take only requests for these hosts, with `*`
    #[arg(long, value_name = "HOST,…", value_delimiter = ',', value_parser = host)]
    pub hosts: Vec<Pattern>,
    /// How long responses are fresh: '*.jpg=1d', 'path:/news/*=60s', 'host:img.example=1h', 'type:image/*=7d'; the first that matches
    #[arg(long, value_name = "PATTERN=DUR", value_parser = ttl)]
    pub ttl: Vec<LogRule<u32>>,
    /// What is never stored: 'path:/api/*', 'host:login.example', 'type:text/html'
    #[arg(long, value_name = "PATTERN", value_parser = uncachable)]
    pub uncachable: Vec<LogRule<()>>,
    /// Which requests are for one object: 'drop utm_*, fbclid; sort query; ignore query; ignore host; lower host; lower path'; with
    /// fields and cookies that are logged: 'vary accept-language; cookie session; ignore cookie _ga*; ignore field user-agent'
    #[arg(long, value_name = "RULES", value_parser = KeyRules::parse)]
    pub key: Option<KeyRules>,
    /// Say which parameters, fields and cookies split objects of the same length, and what each costs in hits
    #[arg(long)]
    pub suggest_keys: bool,
}

impl RuleArgs {
    /// The rules that were given.
    pub fn rules(&self) -> LogRules {
        let mut rules = LogRules::of_key(self.key.clone().unwrap_or_default(), self.suggest_keys);
        rules.hosts.clone_from(&self.hosts);
        rules.ttl.clone_from(&self.ttl);
        rules.uncachable.clone_from(&self.uncachable);
        rules
    }
}

fn host(text: &str) -> Result<Pattern, ArgumentError> {
    Pattern::parse(&format!("host:{text}"))
}

fn ttl(text: &str) -> Result<LogRule<u32>, String> {
    let (pattern, time) =
        text.rsplit_once('=').ok_or_else(|| format!("`{text}` has no time; write it like '*.jpg=1d'"))?;
    let says = match time {
        "0" => 0,
        _ => units::duration(time).map_err(|error| error.to_string())?.as_secs().min(LONGEST_S) as u32,
    };
    Ok(LogRule {
        text: text.to_owned(),
        pattern: Pattern::parse(pattern).map_err(|error| error.to_string())?,
        says,
        matched: 0,
    })
}

fn uncachable(text: &str) -> Result<LogRule<()>, ArgumentError> {
    Ok(LogRule { text: text.to_owned(), pattern: Pattern::parse(text)?, says: (), matched: 0 })
}
