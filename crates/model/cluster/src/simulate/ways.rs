//! From a `[[way]]` of a cluster file to what it costs that a request reaches a node so.

use assay_base::settings::suggest::nearest;
use assay_base::settings::{Fields, Mistake, Value, units};

use crate::simulate::experiment::{PolicyChoice, Way};

/// What a way can have.
pub(crate) const KNOWN: [&str; 5] = ["name", "per-request", "per-megabyte", "layer", "responses"];
/// Bytes of a megabyte, as sizes and rates have it.
const MEGABYTE: f64 = 1e6;

/// Reads one of them.
pub(crate) fn read(fields: &Fields<'_>) -> Result<Way, Mistake> {
    let time = |key: &str| {
        let read = |value: Value<'_>| Ok(value.read(units::duration)?.as_secs_f64());
        fields.get(key).map_or(Ok(0.0), read)
    };
    Ok(Way {
        name: fields.need("name", "what it is called in policies")?.text()?.to_owned(),
        per_request_s: time("per-request")?,
        per_byte_s: time("per-megabyte")? / MEGABYTE,
        sees_requests: fields.get("layer").map_or(Ok(7), |value| layer(&value))? == 7,
        is_passed: fields.get("responses").map_or(Ok(false), |value| value.read(responses))?,
    })
}

fn layer(value: &Value<'_>) -> Result<u64, Mistake> {
    match value.whole(0, u64::MAX)? {
        layer @ (4 | 7) => Ok(layer),
        other => Err(value.wrong(&format!("it is 4 (connections) or 7 (requests), and not {other}"))),
    }
}

fn responses(text: &str) -> Result<bool, String> {
    match text {
        "through" => Ok(false),
        "past" => Ok(true),
        other => Err(format!("`{other}` is neither \"through\" (the switch) nor \"past\" (it)")),
    }
}

/// The way that a policy names, which must show it what it needs.
pub(crate) fn of_policy(
    value: Option<&Value<'_>>,
    choice: &PolicyChoice,
    ways: &[Way],
) -> Result<Option<usize>, Mistake> {
    let Some(value) = value else { return Ok(None) };
    let name = value.text()?;
    let Some(place) = ways.iter().position(|way| way.name == name) else {
        let names = || ways.iter().map(|way| way.name.as_str());
        let mend = match nearest(name, names()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if ways.is_empty() => "add a [[way]] of that name".to_owned(),
            None => format!("there are: {}", names().collect::<Vec<_>>().join(", ")),
        };
        return Err(value.wrong(&format!("there is no way `{name}`; {mend}")));
    };
    match ways[place].sees_requests || !choice.needs_request() {
        true => Ok(Some(place)),
        false => Err(value.wrong(&format!(
            "the policy chooses by what is requested, and `{name}` (layer 4) does not see it; give it a way of layer 7"
        ))),
    }
}
