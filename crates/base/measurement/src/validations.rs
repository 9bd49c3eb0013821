//! Validations that only the origin saw: the proxy validated its stored response, and what it sent does not show it.
//!
//! An origin counts every plain GET of a robot that it sent a proxy a 304 for; robots count those whose response says so as
//! revalidated. What is left looked like a hit to a robot.

use crate::counts::{OriginCounts, RobotCounts};

/// Plain GETs that look like hits and that an origin validated. Those whose response showed it are counted as revalidated
/// already, and are none of these.
pub fn hidden(robots: &RobotCounts, origins: &OriginCounts) -> u64 {
    origins.validated_basic.saturating_sub(robots.revalidated).min(robots.hits + robots.collapsed)
}

/// Body bytes of those.
pub fn hidden_bytes(robots: &RobotCounts, origins: &OriginCounts) -> u64 {
    let bytes = origins.validated_basic_bytes.saturating_sub(robots.revalidated_bytes);
    bytes.min(robots.hit_bytes + robots.collapsed_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_response_showed_is_no_hidden_validation_and_there_are_no_more_than_hits() {
        let robots = |hits, revalidated| RobotCounts {
            hits,
            revalidated,
            hit_bytes: 10 * hits,
            revalidated_bytes: 10 * revalidated,
            ..RobotCounts::default()
        };
        let origins = |validated| OriginCounts {
            validated_basic: validated,
            validated_basic_bytes: 10 * validated,
            ..OriginCounts::default()
        };
        for (hits, shown, validated, expected) in
            [(10, 0, 4, 4), (10, 4, 4, 0), (10, 3, 4, 1), (1, 0, 9, 1), (0, 2, 1, 0)]
        {
            let (robots, origins) = (robots(hits, shown), origins(validated));
            assert_eq!(
                (hidden(&robots, &origins), hidden_bytes(&robots, &origins)),
                (expected, 10 * expected)
            );
        }
    }
}
