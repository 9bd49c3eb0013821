//! `zoneDomains()`: names of addresses by a DNS zone file (RFC 1035, section 5).

use std::collections::HashMap;
use std::net::IpAddr;
use std::rc::Rc;

use super::expression::too_many_items;
use super::functions::Argument;
use super::table::LineError;
use super::{ErrorReported, EvalResult, Interpreter};
use crate::ast::Call;
use crate::diagnostic::{Code, Diagnostic};
use crate::value::Value;
use crate::value::address::AddrRange;

/// `zoneDomains(file, addresses)`: all names of each address, in the order of the addresses.
pub(super) fn zone_domains(
    i: &mut Interpreter<'_>,
    call: &Call,
    arguments: &[Argument],
) -> EvalResult<Value> {
    let [file, from] = arguments else { return Err(ErrorReported) };
    let text = i.file(file)?;
    let zone = match parse(&text) {
        Ok(zone) => zone,
        Err(error) => {
            return i.fail(
                Diagnostic::error(Code::BadLiteral, file.span, "the zone file cannot be read")
                    .label(error.to_string()),
            );
        }
    };
    let addresses = i.addresses(from)?;
    let Some(all) = addresses.flatten() else { return i.fail(too_many_items(from.span)) };
    let mut domains = Vec::new();
    for value in &all {
        let Value::Address(address) = value else { continue };
        let names = address.host().parse().ok().and_then(|ip: IpAddr| zone.get(&ip));
        let Some(names) = names else {
            return i.fail(
                Diagnostic::error(
                    Code::BadAddress,
                    from.span,
                    format!("the zone file has no name for {value}"),
                )
                .label("expected addresses that A or AAAA records of the file name")
                .help("names with a wildcard do not count"),
            );
        };
        for name in names {
            let Ok(name) = AddrRange::parse(name) else { continue };
            domains.push(Value::Address(Rc::new(name.with_port(address.port()))));
        }
    }
    Ok(Value::list(domains, call.span))
}

type Zone = HashMap<IpAddr, Vec<String>>;

/// A zone file that cannot be read.
#[derive(Debug, PartialEq, thiserror::Error)]
enum ZoneError {
    #[error("expected a name after $ORIGIN")]
    NoOrigin,
    #[error("`{0}` is not understood here; expected $ORIGIN or $TTL")]
    UnknownDirective(String),
    #[error("`{0}` is not an IP address")]
    NotAnAddress(String),
}

/// Reads the A and AAAA records of a zone file.
fn parse(text: &str) -> Result<Zone, LineError<ZoneError>> {
    let mut zone = Zone::new();
    let mut origin = String::new();
    let mut owner = String::new();
    for (line, record) in records(text) {
        let error = |error| LineError { line, error };
        let names_owner = !record.starts_with([' ', '\t']);
        let mut words = record.split_whitespace();
        let directive = record.split_whitespace().next().unwrap_or("");
        if directive.eq_ignore_ascii_case("$ORIGIN") {
            let name = words.nth(1).ok_or_else(|| error(ZoneError::NoOrigin))?;
            origin = absolute(name, &origin);
            continue;
        }
        if directive.eq_ignore_ascii_case("$TTL") {
            continue;
        }
        if directive.starts_with('$') {
            return Err(error(ZoneError::UnknownDirective(directive.to_owned())));
        }
        if names_owner {
            owner = words.next().map_or_else(String::new, |name| absolute(name, &origin));
        }
        // A time to live and a class may come before the type, in any order.
        let mut rest = words.skip_while(|word| {
            word.starts_with(|c: char| c.is_ascii_digit())
                || ["IN", "CH", "HS"].iter().any(|c| word.eq_ignore_ascii_case(c))
        });
        let kind = rest.next().unwrap_or("");
        if !kind.eq_ignore_ascii_case("A") && !kind.eq_ignore_ascii_case("AAAA") {
            continue;
        }
        let written = rest.next().unwrap_or("");
        let address: IpAddr =
            written.parse().map_err(|_| error(ZoneError::NotAnAddress(written.to_owned())))?;
        if !owner.contains('*') && !owner.is_empty() {
            zone.entry(address).or_default().push(owner.clone());
        }
    }
    Ok(zone)
}

/// Records without comments, each with the number of its first line; parentheses join lines.
fn records(text: &str) -> Vec<(usize, String)> {
    let mut all: Vec<(usize, String)> = Vec::new();
    let mut open = 0_u32;
    for (index, line) in text.lines().enumerate() {
        let line = line.split(';').next().unwrap_or("");
        let flat: String = line.chars().map(|c| if matches!(c, '(' | ')') { ' ' } else { c }).collect();
        match all.last_mut() {
            Some((_, last)) if open > 0 => last.push_str(&flat),
            _ if flat.trim().is_empty() => {}
            _ => all.push((index + 1, flat)),
        }
        let opened = line.matches('(').count() as u32;
        open = (open + opened).saturating_sub(line.matches(')').count() as u32);
    }
    all
}

/// A domain name, completed with the origin if relative, in lower case and without the final dot.
fn absolute(name: &str, origin: &str) -> String {
    let name = name.to_ascii_lowercase();
    match name.strip_suffix('.') {
        Some(whole) => whole.to_owned(),
        None if name == "@" => origin.to_owned(),
        None if origin.is_empty() => name,
        None => format!("{name}.{origin}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_addresses_are_found_whatever_the_record_looks_like() {
        let text = "$TTL 1h\n$ORIGIN bench.tst.\n@ IN SOA ns root ( 1 ; serial\n 2 3 4 5 )\n NS ns\n\
                    w1 300 IN A 10.0.0.1\n   A 10.0.0.2\nAbs.Other. IN AAAA 2001:db8::1\n*.x A 10.0.0.1\nw2 A 10.0.0.1\n";
        let zone = parse(text).unwrap();
        assert_eq!(zone[&"10.0.0.1".parse::<IpAddr>().unwrap()], ["w1.bench.tst", "w2.bench.tst"]);
        assert_eq!(zone[&"10.0.0.2".parse::<IpAddr>().unwrap()], ["w1.bench.tst"]);
        assert_eq!(zone[&"2001:db8::1".parse::<IpAddr>().unwrap()], ["abs.other"]);
        assert_eq!(zone.len(), 3);
    }

    #[test]
    fn broken_zone_files_name_their_line() {
        assert_eq!(parse("a A 10.0.0.1\nb A 10.0.0\n").unwrap_err().line, 2);
        assert_eq!(parse("$INCLUDE x\n").unwrap_err().line, 1);
        assert_eq!(parse("$ORIGIN\n").unwrap_err().line, 1);
    }
}
