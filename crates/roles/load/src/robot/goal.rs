//! Goals of phases that end at a count.

use std::time::Duration;

use assay_workload::model::Goal;

use super::control::ProgressTotals;

/// Xacts from which a ratio of errors means anything.
const ENOUGH_FOR_A_RATIO: u64 = 1_000;

/// Progress of a phase towards the nearest of its goals, 0 to 1.
pub fn done(goal: &Goal, totals: &ProgressTotals, elapsed: Duration) -> f64 {
    let share = |have: f64, want: f64| if want > 0.0 { have / want } else { 0.0 };
    let count = |have: u64, want: Option<u64>| want.map_or(0.0, |want| share(have as f64, want as f64));
    let time = goal.duration.map_or(0.0, |want| share(elapsed.as_secs_f64(), want.as_secs_f64()));
    let xacts = count(totals.ended, goal.transactions);
    let fill = count(totals.fill_bytes, goal.fill_bytes);
    time.max(xacts).max(fill).min(1.0)
}

/// True if a phase has had more errors than its goal allows: below 1 that is a share, else a number.
pub fn too_many_errors(goal: &Goal, errors: u64, ended: u64) -> bool {
    match goal.errors {
        Some(share) if share > 0.0 && share < 1.0 => {
            ended >= ENOUGH_FOR_A_RATIO && errors as f64 >= share * ended as f64
        }
        Some(number) if number >= 1.0 => errors as f64 >= number,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_goal_counts() {
        let goal = Goal {
            duration: Some(Duration::from_secs(100)),
            transactions: Some(1_000),
            fill_bytes: None,
            errors: None,
        };
        let totals = ProgressTotals { ended: 500, fill_bytes: 99, fill_objects: 9 };
        assert_eq!(done(&goal, &totals, Duration::from_secs(10)), 0.5);
        assert_eq!(done(&goal, &totals, Duration::from_secs(80)), 0.8);
        assert_eq!(done(&goal, &totals, Duration::from_secs(180)), 1.0);
        let fill = Goal { fill_bytes: Some(100), ..Goal::default() };
        assert_eq!(done(&fill, &totals, Duration::from_secs(180)), 0.99);
    }

    #[test]
    fn errors_end_a_run_as_a_share_or_as_a_number() {
        let goal = |errors| Goal { errors: Some(errors), ..Goal::default() };
        assert!(!too_many_errors(&goal(0.1), 999, 999));
        assert!(too_many_errors(&goal(0.1), 100, 1_000));
        assert!(!too_many_errors(&goal(5.0), 4, 4));
        assert!(too_many_errors(&goal(5.0), 5, 5));
        assert!(!too_many_errors(&Goal::default(), 5, 5));
    }
}
