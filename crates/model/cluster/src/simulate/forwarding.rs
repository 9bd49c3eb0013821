//! Parses a `[[forwarding]]` of a cluster file: a forwarding method and its cost.

use assay_base::settings::suggest::nearest;
use assay_base::settings::{Fields, Mistake, Value, units};

use crate::simulate::error::ClusterValueError;
use crate::simulate::experiment::{ForwardingMethod, PolicySpec};

/// Fields of a forwarding method.
pub(crate) const KNOWN: [&str; 5] = ["name", "per-request", "per-megabyte", "layer", "responses"];
/// Bytes of a megabyte, as sizes and rates have it.
const MEGABYTE: f64 = 1e6;

/// Parses a forwarding method.
pub(crate) fn read(fields: &Fields<'_>) -> Result<ForwardingMethod, Mistake> {
    let time = |key: &str| {
        let read = |value: Value<'_>| Ok(value.read(units::duration)?.as_secs_f64());
        fields.get(key).map_or(Ok(0.0), read)
    };
    Ok(ForwardingMethod {
        name: fields.need("name", "what it is called in policies")?.text()?.to_owned(),
        per_request_s: time("per-request")?,
        per_byte_s: time("per-megabyte")? / MEGABYTE,
        sees_requests: fields.get("layer").map_or(Ok(7), |value| layer(&value))? == 7,
        direct_return: fields.get("responses").map_or(Ok(false), |value| value.read(responses))?,
    })
}

fn layer(value: &Value<'_>) -> Result<u64, Mistake> {
    match value.whole(0, u64::MAX)? {
        layer @ (4 | 7) => Ok(layer),
        other => Err(value.wrong(&format!("it is 4 (connections) or 7 (requests), and not {other}"))),
    }
}

fn responses(text: &str) -> Result<bool, ClusterValueError> {
    match text {
        "through" => Ok(false),
        "past" => Ok(true),
        other => Err(ClusterValueError::Responses(other.to_owned())),
    }
}

/// Index of the forwarding method that a policy names; it must show the policy what the policy needs.
pub(crate) fn method_of_policy(
    value: Option<&Value<'_>>,
    choice: &PolicySpec,
    methods: &[ForwardingMethod],
) -> Result<Option<usize>, Mistake> {
    let Some(value) = value else { return Ok(None) };
    let name = value.text()?;
    let Some(index) = methods.iter().position(|method| method.name == name) else {
        let names = || methods.iter().map(|method| method.name.as_str());
        let mend = match nearest(name, names()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if methods.is_empty() => "add a [[forwarding]] of that name".to_owned(),
            None => format!("there are: {}", names().collect::<Vec<_>>().join(", ")),
        };
        return Err(value.wrong(&format!("there is no forwarding `{name}`; {mend}")));
    };
    match methods[index].sees_requests || !choice.needs_request() {
        true => Ok(Some(index)),
        false => Err(value.wrong(&format!(
            "the policy chooses by what is requested, and `{name}` (layer 4) does not see it; give it one of layer 7"
        ))),
    }
}
