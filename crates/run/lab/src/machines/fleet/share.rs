//! Division of robots and origins among machines.
//!
//! A machine gets consecutive robots, as many as its weight says. A robot's requests depend on its number alone, so the requests
//! of all machines together are those of one machine.

/// Divides `count` things among machines in proportion to their weights: first and last of each, counted from 0. Every machine
/// gets at least one; none where there are more machines than things, or no weight is above 0.
pub fn divide(count: u32, weights: &[f64]) -> Option<Vec<(u32, u32)>> {
    let machines =
        u32::try_from(weights.len()).ok().filter(|machines| *machines > 0 && *machines <= count)?;
    let total: f64 = weights.iter().filter(|weight| weight.is_finite() && **weight > 0.0).sum();
    if total <= 0.0 {
        return None;
    }
    let (mut parts, mut first, mut weight_so_far) = (Vec::new(), 0_u32, 0.0);
    for (place, weight) in (1..).zip(weights) {
        weight_so_far += if weight.is_finite() { weight.max(0.0) } else { 0.0 };
        // Up to here by weight, but one at least for this machine and for each that follows.
        let up_to = (f64::from(count) * weight_so_far / total).round() as u32;
        let end = if place == machines { count } else { up_to.clamp(first + 1, count - (machines - place)) };
        parts.push((first, end - 1));
        first = end;
    }
    Some(parts)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn equal_machines_get_equal_parts_and_larger_ones_more() {
        assert_eq!(divide(10, &[1.0, 1.0]), Some(vec![(0, 4), (5, 9)]));
        assert_eq!(divide(12, &[4.0, 2.0]), Some(vec![(0, 7), (8, 11)]));
        assert_eq!(divide(3, &[1000.0, 1.0, 1.0]), Some(vec![(0, 0), (1, 1), (2, 2)]));
        assert_eq!(divide(1, &[1.0, 1.0]), None);
        assert_eq!(divide(5, &[]), None);
        assert_eq!(divide(5, &[0.0, f64::NAN]), None);
    }

    proptest! {
        #[test]
        fn every_robot_is_on_one_machine(
            count in 1_u32..100_000,
            weights in proptest::collection::vec(0.0f64..64.0, 1..20),
        ) {
            let Some(parts) = divide(count, &weights) else {
                prop_assert!(weights.len() > count as usize || weights.iter().sum::<f64>() <= 0.0);
                return Ok(());
            };
            prop_assert_eq!(parts.len(), weights.len());
            let mut next = 0;
            for (first, last) in parts {
                prop_assert!(first == next && last >= first);
                next = last + 1;
            }
            prop_assert_eq!(next, count);
        }
    }
}
