//! Measures how many requests a second and processor are simulated.
//!
//!     size_speed generate TRACE [REQUESTS] [OBJECTS]   requests by Zipf's law, as `oracleGeneral`
//!     size_speed run TRACE WHAT CAPACITY               LRU at all usual sizes in one pass (`curve`), or a policy at one size
//!     size_speed log [LINES] [OBJECTS]                 an access log by Zipf's law, to standard output
//!
//! 10 million requests for 1 million objects with exponent 0.9 unless told otherwise; all objects have the same size, as where others
//! measure. `run` prints requests, processor seconds of numbering the objects, processor seconds of the simulation, and misses (of `curve`,
//! the hits at all sizes). Reading is not in them: the trace is in memory. The log has 100 million lines for 20 million objects unless told
//! otherwise, 2,000 lines a second.

use std::io::{self, Write as _};

use assay_logs::size::curve::usual_sizes;
use assay_logs::size::policy::Policy;
use assay_logs::size::requests::{RequestCollector, Requests, Sizes};
use assay_logs::size::sample::Sampling;
use assay_logs::size::simulate::{cache, lru_in_one_pass};
use assay_logs::size::trace::oracle::Oracle;

const EXPONENT: f64 = 0.9;
const BYTES: u32 = 1;
const LINES_PER_SECOND: usize = 2000;

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let number = |at: usize, usual| arguments.get(at).and_then(|text| text.parse().ok()).unwrap_or(usual);
    match arguments[..] {
        ["generate", trace, ..] => generate(trace, number(2, 10_000_000), number(3, 1_000_000)),
        ["run", trace, what, capacity] => {
            let capacity = capacity.parse().map_err(io::Error::other)?;
            run(trace, what, capacity)
        }
        ["log", ..] => log(number(1, 100_000_000), number(2, 20_000_000)),
        _ => Err(io::Error::other(
            "size_speed generate TRACE [REQUESTS] [OBJECTS] | run TRACE WHAT CAPACITY | log [LINES] [OBJECTS]",
        )),
    }
}

fn generate(path: &str, count: usize, objects: usize) -> io::Result<()> {
    let drawn = zipf(count, objects);
    // The next request of each object, which other simulators read.
    let (mut later, mut next) = (vec![i64::MAX; objects], vec![i64::MAX; count]);
    for (number, object) in drawn.iter().enumerate().rev() {
        next[number] = std::mem::replace(&mut later[*object as usize], number as i64);
    }
    let mut file = io::BufWriter::new(std::fs::File::create(path)?);
    for (at, (object, next)) in drawn.iter().zip(next).enumerate() {
        file.write_all(&(at as u32).to_le_bytes())?;
        file.write_all(&object.to_le_bytes())?;
        file.write_all(&BYTES.to_le_bytes())?;
        file.write_all(&next.to_le_bytes())?;
    }
    file.flush()
}

/// Objects by the continuous form of Zipf's law, which needs no table of all of them.
fn log(lines: usize, objects: usize) -> io::Result<()> {
    let mut out = io::BufWriter::with_capacity(1 << 20, io::stdout().lock());
    let mut draw = uniform();
    let largest = (objects as f64).powf(1.0 - EXPONENT) - 1.0;
    for line in 0..lines {
        let object = (draw() * largest + 1.0).powf(1.0 / (1.0 - EXPONENT)) as u64;
        let (client, second) = ((draw() * 65_536.0) as u32, line / LINES_PER_SECOND);
        writeln!(
            out,
            "10.0.{}.{} - - [{:02}/Jun/2026:{:02}:{:02}:{:02} +0000] \"GET /objects/{object}.html?lang=en HTTP/1.1\" 200 {} \"-\" \
             \"Mozilla/5.0 (X11; Linux x86_64)\"",
            client / 256,
            client % 256,
            second / 86_400 % 30 + 1,
            second / 3600 % 24,
            second / 60 % 60,
            second % 60,
            300 + object.wrapping_mul(7919) % 100_000,
        )?;
    }
    out.flush()
}

fn run(path: &str, what: &str, capacity: u64) -> io::Result<()> {
    let mut records = Vec::new();
    Oracle::default()
        .read(&std::fs::read(path)?, |record| records.push((record.key, record.bytes.unwrap_or(1))));
    let begun = processor_seconds()?;
    let mut collector = RequestCollector::new(Sizes::Within(0), Sampling::default());
    for (key, bytes) in records {
        collector.add_whole(key, bytes, None);
    }
    let requests = collector.finish();
    let numbered = processor_seconds()?;
    let figure = if what == "curve" { curve(&requests) } else { one(&requests, what, capacity)? };
    let ended = processor_seconds()?;
    println!("{} {:.4} {:.4} {figure}", requests.list.len(), numbered - begun, ended - numbered);
    Ok(())
}

fn curve(requests: &Requests) -> u64 {
    let points = lru_in_one_pass(requests, &usual_sizes(requests.footprint_bytes), 0.into());
    points.iter().map(|point| point.total().hits).sum()
}

fn one(requests: &Requests, policy: &str, capacity: u64) -> io::Result<u64> {
    let policy = Policy::parse(policy).map_err(io::Error::other)?;
    let counts = cache(requests, policy, capacity, 0.into());
    Ok(counts.requests - counts.hits)
}

/// Numbers from 0 to 1, from a generator with a fixed seed (SplitMix64).
fn uniform() -> impl FnMut() -> f64 {
    let mut state = 7u64;
    move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) as f64 / 2f64.powi(64)
    }
}

/// Objects by Zipf's law.
fn zipf(count: usize, objects: usize) -> Vec<u64> {
    let mut sums = Vec::with_capacity(objects);
    let mut sum = 0.0;
    for rank in 1..=objects {
        sum += (rank as f64).powf(-EXPONENT);
        sums.push(sum);
    }
    let mut draw = uniform();
    let mut object = || {
        let drawn = draw() * sum;
        sums.partition_point(|sum| *sum < drawn) as u64
    };
    (0..count).map(|_| object()).collect()
}

/// Processor time of this process.
fn processor_seconds() -> io::Result<f64> {
    let text = std::fs::read_to_string("/proc/self/schedstat")?;
    let nanoseconds = text.split(' ').next().and_then(|word| word.parse::<f64>().ok());
    nanoseconds.map(|ns| ns / 1e9).ok_or_else(|| io::Error::other("/proc/self/schedstat says something else"))
}
