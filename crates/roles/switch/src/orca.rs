//! Load reports of servers, in a field of their responses: the text form of ORCA (the Open Request Cost Aggregation of Envoy and
//! gRPC).
//!
//! `endpoint-load-metrics: TEXT cpu_utilization=0.4, named_metrics.disk=0.1, named_metrics.network=0.2,
//! named_metrics.in_flight=3, named_metrics.latency_ns=1200000`. Missing values count as zero; missing requests in flight are
//! those that the switch knows of. The other forms (JSON, binary) are ignored.

use assay_cluster::dispatch::ServerState;
use assay_http::field::{list, trim};

pub const FIELD: &str = "endpoint-load-metrics";

/// Parses the value of the field; `None` if its form is unknown. `in_flight` is used where the report has no such value.
pub fn read(value: &[u8], in_flight: u32) -> Option<ServerState> {
    let (form, rest) = value.split_at_checked(4)?;
    if !form.eq_ignore_ascii_case(b"TEXT") {
        return None;
    }
    let mut state = ServerState { in_flight, ..ServerState::default() };
    let mut any = false;
    for member in list(rest) {
        let Some(at) = memchr::memchr2(b'=', b':', member) else { continue };
        let (name, value) = (trim(&member[..at]), trim(&member[at + 1..]));
        let number = std::str::from_utf8(value).ok().and_then(|text| text.parse::<f64>().ok());
        let Some(number) = number.filter(|number| number.is_finite() && *number >= 0.0) else { continue };
        any = true;
        match name {
            b"cpu_utilization" => state.processor = number.min(1.0),
            b"named_metrics.disk" => state.disk = number.min(1.0),
            b"named_metrics.network" => state.network = number.min(1.0),
            b"named_metrics.in_flight" => state.in_flight = number as u32,
            b"named_metrics.latency_ns" => state.latency_nanos = Some(number as u64),
            _ => {}
        }
    }
    any.then_some(state)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_taken_and_the_rest_is_none() {
        let all = b"TEXT cpu_utilization=0.5, named_metrics.disk=0.25,named_metrics.in_flight=7 , \
                    mem_utilization=0.9, named_metrics.latency_ns=1500";
        let state = read(all, 2).expect("is known");
        assert_eq!((state.processor, state.disk, state.network), (0.5, 0.25, 0.0));
        assert_eq!((state.in_flight, state.latency_nanos), (7, Some(1500)));
        assert_eq!(read(b"text cpu_utilization=3", 2).map(|s| (s.processor, s.in_flight)), Some((1.0, 2)));
    }

    #[test]
    fn what_makes_no_sense_is_passed_over() {
        for bad in [
            &b""[..],
            b"TEX",
            b"JSON {\"cpu_utilization\": 0.3}",
            b"TEXT",
            b"TEXT cpu_utilization=x",
            b"TEXT a=-1",
        ] {
            assert_eq!(read(bad, 0), None, "{bad:?}");
        }
    }
}
