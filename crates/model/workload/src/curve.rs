//! Rates, added up over time. Straight lines, their products, and the integrals of those: closed polynomials, piece by
//! piece.

/// A value that moves on a straight line while its piece goes from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Line {
    pub(crate) begin: f64,
    pub(crate) end: f64,
}

impl Line {
    #[inline]
    pub(crate) fn at(&self, u: f64) -> f64 {
        self.begin + (self.end - self.begin) * u
    }

    /// The part between two places, as a line of its own.
    pub(crate) fn part(&self, from: f64, to: f64) -> Self {
        Self { begin: self.at(from), end: self.at(to) }
    }

    pub(crate) fn map(&self, f: impl Fn(f64) -> f64) -> Self {
        Self { begin: f(self.begin), end: f(self.end) }
    }
}

/// Coefficients of a polynomial of degree at most 5, lowest first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Poly([f64; 6]);

impl Poly {
    pub(crate) const ZERO: Self = Self([0.0; 6]);

    pub(crate) fn constant(value: f64) -> Self {
        let mut poly = Self::ZERO;
        poly.0[0] = value;
        poly
    }

    /// Times a line. The degree must have room for it: products here have at most four lines.
    pub(crate) fn times(&self, line: Line) -> Self {
        let slope = line.end - line.begin;
        let mut product = [0.0; 6];
        for (power, slot) in product.iter_mut().enumerate() {
            let lower = if power == 0 { 0.0 } else { self.0[power - 1] };
            *slot = self.0[power] * line.begin + lower * slope;
        }
        Self(product)
    }

    pub(crate) fn plus(&self, other: &Self) -> Self {
        let mut sum = self.0;
        sum.iter_mut().zip(other.0).for_each(|(a, b)| *a += b);
        Self(sum)
    }

    /// The antiderivative times `length`, that starts at `from`.
    fn integral(&self, length: f64, from: f64) -> Self {
        let mut integral = [from, 0.0, 0.0, 0.0, 0.0, 0.0];
        for (power, slot) in integral.iter_mut().enumerate().skip(1) {
            *slot = self.0[power - 1] * length / power as f64;
        }
        Self(integral)
    }

    #[inline]
    fn at(&self, u: f64) -> f64 {
        self.0.iter().rev().fold(0.0, |sum, c| sum * u + c)
    }

    #[inline]
    fn slope(&self, u: f64) -> f64 {
        (1..6).rev().fold(0.0, |sum, power| sum * u + self.0[power] * power as f64)
    }

    fn is_straight(&self) -> bool {
        self.0[2..].iter().all(|c| *c == 0.0)
    }
}

/// A growing sum over all pieces of a schedule: the integral of a rate that is never negative.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Curve {
    pieces: Vec<CurvePiece>,
}

#[derive(Debug, Clone, PartialEq)]
struct CurvePiece {
    /// The sum so far, as a function of the place in the piece.
    sum: Poly,
    straight: bool,
    begin: f64,
    /// At the place where it is cut, and where it would end if it were not.
    end: f64,
    whole: f64,
}

impl Curve {
    /// From the rate (per second) in each piece, the piece's length in seconds, and the place (1: the end) at
    /// which it is cut.
    pub(crate) fn new(rates: impl IntoIterator<Item = (Poly, f64, f64)>) -> Self {
        let mut begin = 0.0;
        let pieces = rates
            .into_iter()
            .map(|(rate, length_s, cut)| {
                let sum = rate.integral(length_s, begin);
                // Rounding must not make a sum fall.
                let end = sum.at(cut).max(begin);
                let whole = sum.at(1.0).max(begin);
                let piece = CurvePiece { straight: sum.is_straight(), sum, begin, end, whole };
                begin = end;
                piece
            })
            .collect();
        Self { pieces }
    }

    /// The sum at a place in a piece; that of the end beyond the last piece.
    #[inline]
    pub(crate) fn at(&self, piece: usize, u: f64) -> f64 {
        match self.pieces.get(piece) {
            Some(piece) => piece.sum.at(u).clamp(piece.begin, piece.end),
            None => self.total(),
        }
    }

    /// The sum at the end of the last piece.
    pub(crate) fn total(&self) -> f64 {
        self.pieces.last().map_or(0.0, |piece| piece.end)
    }

    /// Position at which the sum reaches a value, searched from a piece on; none if it never does.
    #[inline]
    pub(crate) fn reach(&self, value: f64, from_piece: usize) -> Option<(usize, f64)> {
        let piece = (from_piece..self.pieces.len()).find(|index| self.pieces[*index].end > value)?;
        Some((piece, self.pieces[piece].solve(value, 0.0, 1.0)))
    }

    /// As [`Curve::reach`] within a part of one piece that is known to hold the value.
    #[inline]
    pub(crate) fn solve(&self, piece: usize, value: f64, low: f64, high: f64) -> f64 {
        self.pieces[piece].solve(value, low, high)
    }
}

impl CurvePiece {
    /// The place between `low` and `high` where the sum is `value`. Depends on the arguments alone, and not
    /// on where the piece is cut, so that every slice of a stream finds the same bits.
    #[inline]
    fn solve(&self, value: f64, low: f64, high: f64) -> f64 {
        if self.straight {
            return ((value - self.begin) / (self.whole - self.begin)).clamp(low, high);
        }
        let (mut low, mut high) = (low, high);
        let (below, above) = (self.sum.at(low), self.sum.at(high));
        let mut u = low + (high - low) * ((value - below) / (above - below)).clamp(0.0, 1.0);
        // Newton, kept between the ends; where the rate vanishes it falls back to halving.
        for _ in 0..64 {
            let miss = self.sum.at(u) - value;
            if miss > 0.0 {
                high = u
            } else {
                low = u
            }
            let step = u - miss / self.sum.slope(u);
            let next = if step > low && step < high { step } else { (low + high) / 2.0 };
            if libm::fabs(next - u) <= 1e-15 {
                return next;
            }
            u = next;
        }
        u
    }
}

/// Points of Gauss and Legendre on [-1, 1] with their weights: exact up to degree 9.
const POINTS: [(f64, f64); 5] = [
    (-0.906_179_845_938_664, 0.236_926_885_056_189_1),
    (-0.538_469_310_105_683_1, 0.478_628_670_499_366_5),
    (0.0, 0.568_888_888_888_888_9),
    (0.538_469_310_105_683_1, 0.478_628_670_499_366_5),
    (0.906_179_845_938_664, 0.236_926_885_056_189_1),
];

/// The integral of a function over [from, to] by five points.
pub(crate) fn integrate(from: f64, to: f64, mut f: impl FnMut(f64) -> f64) -> f64 {
    let (middle, half) = ((from + to) / 2.0, (to - from) / 2.0);
    half * POINTS.iter().map(|(x, weight)| weight * f(middle + half * x)).sum::<f64>()
}

/// The points and weights of [`integrate`], for several functions at once.
pub(crate) fn points(from: f64, to: f64) -> impl Iterator<Item = (f64, f64)> {
    let (middle, half) = ((from + to) / 2.0, (to - from) / 2.0);
    POINTS.into_iter().map(move |(x, weight)| (middle + half * x, half * weight))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn line() -> impl Strategy<Value = Line> {
        (0.0f64..2.0, 0.0f64..2.0).prop_map(|(begin, end)| Line { begin, end })
    }

    proptest! {
        #[test]
        fn a_curve_is_the_integral_of_its_rate(
            lines in prop::array::uniform4(line()), length in 0.1f64..1e5, u in 0.0f64..=1.0,
        ) {
            let rate = lines.iter().fold(Poly::constant(3.0), |p, l| p.times(*l));
            let curve = Curve::new([(rate, length, 1.0)]);
            let direct = length * integrate(0.0, u, |v| lines.iter().fold(3.0, |p, l| p * l.at(v)));
            prop_assert!((curve.at(0, u) - direct).abs() <= 1e-9 * (1.0 + direct));
        }

        #[test]
        fn reaching_a_value_undoes_the_sum(
            lines in prop::collection::vec(prop::array::uniform3(line()), 1..5), share in 0.0f64..1.0,
        ) {
            let rate = |ls: &[Line; 3]| ls.iter().fold(Poly::constant(3.0), |p, l| p.times(*l));
            let curve = Curve::new(lines.iter().map(|ls| (rate(ls), 100.0, 1.0)));
            let value = curve.total() * share;
            let (piece, u) = curve.reach(value, 0).unwrap();
            prop_assert!((0.0..=1.0).contains(&u));
            prop_assert!((curve.at(piece, u) - value).abs() <= 1e-9 * (1.0 + value));
        }
    }

    #[test]
    fn a_value_beyond_the_end_is_never_reached() {
        let curve = Curve::new([(Poly::constant(2.0), 5.0, 1.0), (Poly::ZERO, 5.0, 1.0)]);
        assert_eq!(curve.total(), 10.0);
        assert_eq!(curve.reach(10.0, 0), None);
        assert_eq!(curve.reach(4.0, 0), Some((0, 0.4)));
    }
}
