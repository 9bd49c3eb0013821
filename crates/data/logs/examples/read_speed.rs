//! The speed at which logs are analysed. `read_speed generate LINES` writes a log in Squid's native format; `read_speed read
//! FILE…` analyses logs and says how many lines and bytes a second of processor time goes through.
//!
//! The generated log has Zipf-like popularity over objects that grow in number with the log, so tables do not stay small.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::time::Instant;

use assay_logs::analysis::AnalysisOptions;

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    match (arguments.next().as_deref(), arguments.next()) {
        (Some("generate"), Some(lines)) => generate(lines.parse().map_err(io::Error::other)?),
        (Some("read"), Some(first)) => {
            let files: Vec<PathBuf> = std::iter::once(first).chain(arguments).map(PathBuf::from).collect();
            read(&files)
        }
        _ => Err(io::Error::other("read_speed generate LINES | read_speed read FILE…")),
    }
}

fn read(files: &[PathBuf]) -> io::Result<()> {
    let (began, cpu) = (Instant::now(), processor_seconds()?);
    let options = AnalysisOptions { top: 10, ..AnalysisOptions::default() };
    let document = assay_logs::analyse(files, None, options).map_err(io::Error::other)?;
    let (wall, cpu) = (began.elapsed().as_secs_f64(), processor_seconds()? - cpu);
    let lines = document.lines;
    println!(
        "{} lines, {:.1} MB, DHR {:.4}; {cpu:.2} s of processor, {wall:.2} s; {:.2} M lines/s and {:.0} MB/s per core",
        lines.read,
        lines.bytes as f64 / 1e6,
        document.all.dhr.unwrap_or_default(),
        lines.read as f64 / cpu / 1e6,
        lines.bytes as f64 / cpu / 1e6
    );
    Ok(())
}

/// Processor time of this process so far, from `/proc/self/schedstat`.
fn processor_seconds() -> io::Result<f64> {
    let text = std::fs::read_to_string("/proc/self/schedstat")?;
    let nanoseconds = text.split(' ').next().and_then(|word| word.parse::<f64>().ok());
    nanoseconds.map(|ns| ns / 1e9).ok_or_else(|| io::Error::other("/proc/self/schedstat says something else"))
}

fn generate(lines: u64) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 20, io::stdout().lock());
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for line in 0..lines {
        let (one, two) = (random(), random());
        let unit = (one >> 11) as f64 / (1u64 << 53) as f64;
        // Popularity falls like 1/x over all objects so far.
        let objects = 1000.0 + line as f64 / 2.0;
        let object = objects.powf(unit) as u64;
        let hash = object.wrapping_mul(0xd6e8_feb8_6659_fd93);
        let (code, hierarchy) = match two % 10 {
            0..4 => ("TCP_MEM_HIT", "HIER_NONE/-"),
            4 => ("TCP_HIT", "HIER_NONE/-"),
            5 => ("TCP_MISS", "SIBLING_HIT/10.0.0.2"),
            _ => ("TCP_MISS", "HIER_DIRECT/192.0.2.17"),
        };
        let kind =
            ["text/html", "image/png", "image/jpeg", "application/javascript"][(hash >> 20) as usize % 4];
        writeln!(
            out,
            "{}.{:03} {:6} 10.{}.{}.{} {code}/200 {} GET http://www{}.example.com/w{:08x}/t{:02x}/object_{:016x}.html - {hierarchy} {kind}",
            1_700_000_000 + line / 2000,
            line / 2 % 1000,
            (two >> 8) % 3000,
            (two >> 20) % 4,
            (two >> 24) % 256,
            (two >> 32) % 256,
            200 + hash % 60_000,
            hash % 50,
            hash >> 32,
            hash % 100,
            object
        )?;
    }
    out.flush()
}
