//! Numbers that look like chance and are the same every time.

/// SplitMix64.
#[derive(Debug, Clone)]
pub struct Chance(pub u64);

impl Chance {
    /// From 0 up to 1.
    pub fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ mixed >> 31) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Of mean 1.
    pub fn exponential(&mut self) -> f64 {
        -(1.0 - self.next()).ln()
    }

    /// Between two numbers, every factor as probable as any other.
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low * (high / low).powf(self.next())
    }
}
