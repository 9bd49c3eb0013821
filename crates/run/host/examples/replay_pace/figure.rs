//! Figure 11.7: when each part of one page came, fetched and replayed.

use std::fmt::Write as _;
use std::io;

use crate::bed::Options;
use crate::client::Fetched;
use crate::origin::Page;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 360.0;
const MARGIN: f64 = 50.0;

/// Writes the files of the options: all arrivals as a table, and the page with the most parts as a drawing.
pub fn write(options: &Options, pages: &[(Fetched, Fetched)]) -> io::Result<()> {
    if let Some(path) = &options.csv {
        let mut text = String::from("path,bytes,fetched_ms,replayed_ms\n");
        for (missed, hit) in pages {
            for bytes in Page::of(&missed.path).ends() {
                if let (Some(fetched), Some(replayed)) = (missed.arrival_ms(bytes), hit.arrival_ms(bytes)) {
                    let _ = writeln!(text, "{},{bytes},{fetched:.3},{replayed:.3}", missed.path);
                }
            }
        }
        std::fs::write(path, text)?;
    }
    let largest = pages.iter().max_by_key(|(missed, _)| Page::of(&missed.path).ends().len());
    match (&options.svg, largest) {
        (Some(path), Some((missed, hit))) => std::fs::write(path, drawing(missed, hit)),
        _ => Ok(()),
    }
}

fn drawing(missed: &Fetched, hit: &Fetched) -> String {
    let ends = Page::of(&missed.path).ends();
    let most_ms = missed.total_ms().max(hit.total_ms());
    let most_bytes = ends.last().copied().unwrap_or(1) as f64;
    let x = |ms: f64| MARGIN + (WIDTH - 2.0 * MARGIN) * ms / most_ms;
    let y = |bytes: f64| HEIGHT - MARGIN - (HEIGHT - 2.0 * MARGIN) * bytes / most_bytes;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
         font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <path d=\"M{MARGIN} {MARGIN}V{bottom}H{right}\" fill=\"none\" stroke=\"#555\"/>\n\
         <text x=\"{right}\" y=\"{below}\" text-anchor=\"end\">{most_ms:.0} ms since the request</text>\n\
         <text x=\"{MARGIN}\" y=\"{above}\">{most_bytes:.0} bytes of the body</text>\n",
        bottom = HEIGHT - MARGIN,
        right = WIDTH - MARGIN,
        below = HEIGHT - MARGIN + 20.0,
        above = MARGIN - 12.0,
    );
    for (fetched, color, name, line) in
        [(missed, "#1f6fb4", "fetched", 1.0), (hit, "#d9541e", "replayed", 2.0)]
    {
        let mut path = format!("M{:.1} {:.1}", x(0.0), y(0.0));
        for &bytes in &ends {
            if let Some(ms) = fetched.arrival_ms(bytes) {
                let _ = write!(path, "H{:.1}V{:.1}", x(ms), y(bytes as f64));
            }
        }
        let dashes = if name == "replayed" { " stroke-dasharray=\"6 4\"" } else { "" };
        let _ = writeln!(
            svg,
            "<path d=\"{path}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"2\"{dashes}/>\n\
             <text x=\"{:.1}\" y=\"{:.1}\" fill=\"{color}\">{name}</text>",
            MARGIN + 12.0,
            MARGIN + 18.0 * line,
        );
    }
    svg.push_str("</svg>\n");
    svg
}
