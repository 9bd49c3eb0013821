//! What was measured in a stretch of time, and the names that scripts use for it.
//!
//! Sums that can be added: two intervals after one another make one longer one.

use super::ScriptValue;
use crate::model::Goal;

/// Classes of responses that scripts tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseClass {
    Rep,
    /// Responses to basic requests.
    Basic,
    /// Basic revisits of cachable objects.
    OfferedHit,
    OfferedMiss,
    RealHit,
    /// Basic requests that were no hits.
    RealMiss,
    /// Responses that may be stored.
    CachableYes,
    /// Responses that may not.
    CachableNo,
    /// Basic first visits of cachable objects.
    Fill,
    /// Requests after a redirection.
    RedirectedRequest,
    ResponseToRedirect,
    Ims,
    Reload,
    Range,
    /// HEAD.
    Head,
    /// POST.
    Post,
    /// PUT.
    Put,
    /// Broken off on purpose.
    Abort,
    Page,
}

/// Names in scripts, in the order of [`ResponseClass`].
const CLASS_NAMES: [&str; 19] = [
    "rep",
    "basic",
    "offered.hit",
    "offered.miss",
    "real.hit",
    "real.miss",
    "cachable.yes",
    "cachable.no",
    "fill",
    "redired_req",
    "rep_to_redir",
    "ims",
    "reload",
    "range",
    "head",
    "post",
    "put",
    "abort",
    "page",
];

/// Sums of one quantity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moments {
    pub sum: f64,
    pub squares: f64,
    pub min: f64,
    pub max: f64,
}

impl Default for Moments {
    fn default() -> Self {
        Self { sum: 0.0, squares: 0.0, min: f64::INFINITY, max: f64::NEG_INFINITY }
    }
}

impl Moments {
    #[inline]
    pub fn record(&mut self, value: f64) {
        self.sum += value;
        self.squares += value * value;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    fn add(&mut self, other: &Self) {
        self.sum += other.sum;
        self.squares += other.squares;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }
}

/// Responses of one class.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ClassSums {
    pub count: u64,
    /// Response times in seconds.
    pub time_s: Moments,
    /// Sizes in bytes.
    pub bytes: Moments,
}

impl ClassSums {
    #[inline]
    pub fn record(&mut self, time_s: f64, bytes: u64) {
        self.count += 1;
        self.time_s.record(time_s);
        self.bytes.record(bytes as f64);
    }
}

/// Measurements of an interval of time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sample {
    /// Length in seconds of real time.
    pub duration_s: f64,
    pub requests: u64,
    /// Xacts that ended well.
    pub ok: u64,
    pub errors: u64,
    /// Xacts that were tried again.
    pub retries: u64,
    classes: [ClassSums; CLASS_NAMES.len()],
}

impl Sample {
    /// The sums of a class.
    pub fn class(&self, class: ResponseClass) -> &ClassSums {
        &self.classes[class as usize]
    }

    /// The sums of a class, to add to.
    pub fn class_mut(&mut self, class: ResponseClass) -> &mut ClassSums {
        &mut self.classes[class as usize]
    }

    /// Adds a stretch that follows.
    pub fn add(&mut self, next: &Self) {
        self.duration_s += next.duration_s;
        self.requests += next.requests;
        self.ok += next.ok;
        self.errors += next.errors;
        self.retries += next.retries;
        for (sums, next) in self.classes.iter_mut().zip(&next.classes) {
            sums.count += next.count;
            sums.time_s.add(&next.time_s);
            sums.bytes.add(&next.bytes);
        }
    }

    /// True when it has reached one of these goals. Errors below 1 are a share, taken after 1000 xacts.
    pub fn reaches(&self, goal: &Goal) -> bool {
        let xacts = self.ok + self.errors;
        let errors = |most: f64| match most {
            most if most <= 0.0 => false,
            most if most < 1.0 => xacts >= 1000 && self.errors as f64 >= most * xacts as f64,
            most => self.errors as f64 >= most,
        };
        goal.duration.is_some_and(|d| !d.is_zero() && self.duration_s >= d.as_secs_f64())
            || goal.transactions.is_some_and(|most| most > 0 && xacts >= most)
            || goal.fill_bytes.is_some_and(|b| b > 0 && self.class(ResponseClass::Fill).bytes.sum >= b as f64)
            || goal.errors.is_some_and(errors)
    }

    /// A statistic by its dotted name; none when there is none of that name. As in Web Polygraph, ratios and relative
    /// deviations are percents, and standard deviations plain numbers: milliseconds of times, bytes of sizes.
    pub fn statistic(&self, name: &str) -> Option<ScriptValue> {
        let number = |value: f64| Some(ScriptValue::Number(value));
        let per_second = |count: u64| number(count as f64 / self.duration_s);
        match name {
            "duration" => return Some(ScriptValue::Seconds(self.duration_s)),
            "ok_xact.count" => return number(self.ok as f64),
            "err_xact.count" => return number(self.errors as f64),
            "err_xact.ratio" => {
                return number(100.0 * self.errors as f64 / ((self.ok + self.errors) as f64).max(1.0));
            }
            "retr_xact.count" => return number(self.retries as f64),
            "baseline.req.rate" | "req.rate" => return per_second(self.requests),
            "baseline.rep.rate" | "rep.rate" => return per_second(self.class(ResponseClass::Rep).count),
            "offered.ratio.obj" => {
                return number(self.ratio(ResponseClass::OfferedHit, ResponseClass::OfferedMiss, false));
            }
            "offered.ratio.byte" => {
                return number(self.ratio(ResponseClass::OfferedHit, ResponseClass::OfferedMiss, true));
            }
            "real.ratio.obj" => {
                return number(self.ratio(ResponseClass::RealHit, ResponseClass::RealMiss, false));
            }
            "real.ratio.byte" => {
                return number(self.ratio(ResponseClass::RealHit, ResponseClass::RealMiss, true));
            }
            "cachable.ratio.obj" => {
                return number(self.ratio(ResponseClass::CachableYes, ResponseClass::CachableNo, false));
            }
            "cachable.ratio.byte" => {
                return number(self.ratio(ResponseClass::CachableYes, ResponseClass::CachableNo, true));
            }
            _ => {}
        }
        let name = name.strip_prefix("baseline.").map_or(name.to_owned(), |rest| format!("rep.{rest}"));
        let (rest, what) = name.rsplit_once('.')?;
        let (class, quantity) = rest.rsplit_once('.')?;
        let sums = &self.classes[CLASS_NAMES.iter().position(|known| *known == class)?];
        let (spread, is_time) = match quantity {
            "rptm" => (&sums.time_s, true),
            "size" => (&sums.bytes, false),
            _ => return None,
        };
        let (value, has_unit) = moment(sums.count, spread, what)?;
        Some(match what {
            "std_dev" if is_time => ScriptValue::Number(value * 1e3),
            _ if is_time && has_unit => ScriptValue::Seconds(value),
            _ => ScriptValue::Number(value),
        })
    }

    /// In percent.
    fn ratio(&self, yes: ResponseClass, no: ResponseClass, bytes: bool) -> f64 {
        let of = |class| {
            let sums = self.class(class);
            if bytes { sums.bytes.sum } else { sums.count as f64 }
        };
        let all = of(yes) + of(no);
        if all > 0.0 { 100.0 * of(yes) / all } else { 0.0 }
    }
}

/// A moment of a quantity by its name, and whether it has the quantity's unit.
fn moment(count: u64, spread: &Moments, what: &str) -> Option<(f64, bool)> {
    let n = count as f64;
    let of_some = |value: f64| if count > 0 { value } else { 0.0 };
    let mean = of_some(spread.sum / n);
    let deviation = of_some(libm::sqrt((spread.squares / n - mean * mean).max(0.0)));
    Some(match what {
        "count" => (n, false),
        "mean" => (mean, true),
        "min" => (of_some(spread.min), true),
        "max" => (of_some(spread.max), true),
        "std_dev" => (deviation, false),
        "rel_dev" => (if mean > 0.0 { 100.0 * deviation / mean } else { 0.0 }, false),
        "sum" => (spread.sum, true),
        _ => return None,
    })
}

/// True when scripts have a statistic of this name.
pub fn is_statistic(name: &str) -> bool {
    Sample::default().statistic(name).is_some()
}
