//! Student's t: the probability of a value, and the value of a probability.
//!
//! The tail is the regularised incomplete beta function, taken from its continued fraction; the quantile inverts it by
//! halving an interval. Both are good to at least nine digits for any number of degrees of freedom that runs can have.

/// Terms of the continued fraction that are taken at most; some dozens suffice.
const TERMS: u32 = 1000;
/// Halvings: more than a number has bits.
const HALVINGS: u32 = 64;

/// The probability that |T| is at least `t`, for Student's T with `freedom` degrees of freedom.
pub fn two_sided(t: f64, freedom: f64) -> f64 {
    if t.is_nan() || freedom.is_nan() || freedom <= 0.0 {
        return f64::NAN;
    }
    if t.is_infinite() {
        return 0.0;
    }
    incomplete_beta(freedom / (freedom + t * t), freedom / 2.0, 0.5)
}

/// The value that |T| reaches or passes with probability `tail`: 0.05 gives the half width of a 95 % interval.
pub fn quantile(tail: f64, freedom: f64) -> f64 {
    if !(tail > 0.0 && tail <= 1.0) || freedom.is_nan() || freedom <= 0.0 {
        return f64::NAN;
    }
    let mut high = 1.0;
    while two_sided(high, freedom) > tail && high < 1e300 {
        high *= 2.0;
    }
    let mut low = 0.0;
    for _ in 0..HALVINGS {
        let middle = (low + high) / 2.0;
        if two_sided(middle, freedom) > tail { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

/// Factor that takes the bias off Hedges' g, for an effect size standardised with `freedom` degrees of freedom.
pub fn hedges_correction(freedom: f64) -> f64 {
    if freedom <= 1.0 {
        return f64::NAN;
    }
    let half = freedom / 2.0;
    libm::exp(libm::lgamma(half) - libm::lgamma(half - 0.5)) / libm::sqrt(half)
}

/// The regularised incomplete beta function I_x(a, b).
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let log_front =
        libm::lgamma(a + b) - libm::lgamma(a) - libm::lgamma(b) + a * libm::log(x) + b * libm::log1p(-x);
    let front = libm::exp(log_front);
    // The fraction converges fast on one side of the mean; the other side is its mirror.
    if x < (a + 1.0) / (a + b + 2.0) {
        front * fraction(x, a, b) / a
    } else {
        1.0 - front * fraction(1.0 - x, b, a) / b
    }
}

/// The continued fraction of the incomplete beta function, by Lentz's method.
fn fraction(x: f64, a: f64, b: f64) -> f64 {
    let kept_from_zero = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / kept_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut result = d;
    for term in 1..=TERMS {
        let m = f64::from(term);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut step = 1.0;
        for numerator in [even, odd] {
            d = 1.0 / kept_from_zero(1.0 + numerator * d);
            c = kept_from_zero(1.0 + numerator / c);
            step = d * c;
            result *= step;
        }
        if (step - 1.0).abs() < 1e-15 {
            break;
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// (degrees of freedom, half width of a 95 % and of a 99 % interval), as statistical tables print them.
    const TABLE: [(f64, f64, f64); 10] = [
        (1.0, 12.7062, 63.6567),
        (2.0, 4.302_65, 9.924_84),
        (3.0, 3.182_45, 5.840_91),
        (4.0, 2.776_45, 4.604_09),
        (5.0, 2.570_58, 4.032_14),
        (9.0, 2.262_16, 3.249_84),
        (10.0, 2.228_14, 3.169_27),
        (20.0, 2.085_96, 2.845_34),
        (30.0, 2.042_27, 2.750_00),
        (120.0, 1.979_93, 2.617_42),
    ];

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (freedom, at_95, at_99) in TABLE {
            assert!((quantile(0.05, freedom) / at_95 - 1.0).abs() < 4e-6, "{freedom}");
            assert!((quantile(0.01, freedom) / at_99 - 1.0).abs() < 4e-6, "{freedom}");
        }
        // From a normal distribution it cannot be told any more.
        assert!((quantile(0.05, 1e7) - 1.959_964).abs() < 1e-5);
    }

    #[test]
    fn tails_with_one_and_two_degrees_of_freedom_are_those_of_their_closed_forms() {
        for t in [0.0, 0.1, 0.7, 1.0, 2.5, 17.0, 4000.0] {
            let one = 1.0 - 2.0 / std::f64::consts::PI * f64::atan(t);
            let two = 1.0 - t / (2.0 + t * t).sqrt();
            assert!((two_sided(t, 1.0) - one).abs() < 1e-12, "{t}");
            assert!((two_sided(t, 2.0) - two).abs() < 1e-12, "{t}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_no_number() {
        assert!(two_sided(1.0, 0.0).is_nan() && two_sided(f64::NAN, 3.0).is_nan());
        assert!(quantile(0.0, 3.0).is_nan() && quantile(1.5, 3.0).is_nan());
        assert_eq!(two_sided(f64::INFINITY, 3.0), 0.0);
    }

    #[test]
    fn hedges_correction_is_near_its_usual_approximation() {
        assert!((hedges_correction(2.0) - 0.564_190).abs() < 1e-6, "1 / the root of pi");
        for freedom in [3.0, 9.0, 40.0] {
            let usual = 1.0 - 3.0 / (4.0 * freedom - 1.0);
            assert!((hedges_correction(freedom) - usual).abs() < 0.005, "{freedom}");
        }
    }

    proptest! {
        #[test]
        fn a_quantile_has_the_given_tail(tail in 1e-9..0.999f64, freedom in 1u32..400) {
            let freedom = f64::from(freedom);
            let found = two_sided(quantile(tail, freedom), freedom);
            prop_assert!((found / tail - 1.0).abs() < 1e-8, "{found} for {tail}");
        }

        #[test]
        fn larger_values_are_rarer(t in 0.0..50.0f64, more in 0.001..5.0f64, freedom in 1u32..200) {
            let freedom = f64::from(freedom);
            prop_assert!(two_sided(t + more, freedom) < two_sided(t, freedom));
        }
    }
}
