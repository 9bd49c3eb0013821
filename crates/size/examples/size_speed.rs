//! Measures how many requests a second and processor are simulated: LRU at all usual sizes in one pass, and each policy at one
//! size, a tenth of all objects. Requests are drawn from Zipf's law; all objects have the same size, as where others measure.
//!
//!     cargo run --release -p assay-size --example size_speed [REQUESTS] [OBJECTS] [TRACE]
//!
//! 10 million requests for 1 million objects with exponent 0.9 unless told otherwise. With TRACE, the requests are also written to
//! that file as `oracleGeneral`, for other simulators.

use std::io::{self, Write as _};

use assay_size::curve::usual_sizes;
use assay_size::policy::Policy;
use assay_size::requests::{Gather, Sizes};
use assay_size::sample::Sampling;
use assay_size::simulate::{cache, lru_in_one_pass};

const EXPONENT: f64 = 0.9;
const BYTES: u64 = 1;

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |usual| arguments.next().and_then(|text| text.parse().ok()).unwrap_or(usual);
    let (count, objects) = (number(10_000_000), number(1_000_000));
    let drawn = zipf(count, objects);
    if let Some(path) = arguments.next() {
        let mut file = io::BufWriter::new(std::fs::File::create(path)?);
        for (at, object) in drawn.iter().enumerate() {
            file.write_all(&(at as u32).to_le_bytes())?;
            file.write_all(&object.to_le_bytes())?;
            file.write_all(&(BYTES as u32).to_le_bytes())?;
            file.write_all(&i64::MAX.to_le_bytes())?;
        }
        file.flush()?;
    }
    let begun = processor_seconds()?;
    let mut gather = Gather::new(Sizes::Within(0), Sampling::default());
    for object in drawn {
        gather.whole(object, BYTES, None);
    }
    let requests = gather.finish();
    show("collecting", count, begun, 0)?;
    let sizes = usual_sizes(requests.footprint_bytes);
    let begun = processor_seconds()?;
    let points = lru_in_one_pass(&requests, &sizes, 0.into());
    show(
        &format!("LRU, {} sizes at once", sizes.len()),
        count,
        begun,
        points.iter().map(|point| point.total().hits).sum(),
    )?;
    for policy in Policy::ALL {
        let begun = processor_seconds()?;
        let counts = cache(&requests, policy, objects as u64 / 10, 0.into());
        show(policy.title(), count, begun, counts.requests - counts.hits)?;
    }
    Ok(())
}

fn show(what: &str, count: usize, begun_s: f64, figure: u64) -> io::Result<()> {
    let rate = count as f64 / (processor_seconds()? - begun_s) / 1e6;
    println!("{what:24} {rate:7.2} million requests/s ({figure})");
    Ok(())
}

/// Objects by Zipf's law, from a generator with a fixed seed (SplitMix64).
fn zipf(count: usize, objects: usize) -> Vec<u64> {
    let mut sums = Vec::with_capacity(objects);
    let mut sum = 0.0;
    for rank in 1..=objects {
        sum += (rank as f64).powf(-EXPONENT);
        sums.push(sum);
    }
    let mut state = 7u64;
    let mut draw = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) as f64 / 2f64.powi(64) * sum
    };
    let mut object = || {
        let drawn = draw();
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
