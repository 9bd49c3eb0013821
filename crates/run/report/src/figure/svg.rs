//! A drawing as SVG: text stays text, so that a paper can set it in its own type.

use std::fmt::Write as _;

use super::shape::{Anchor, Colour, Drawing, Shape};
use assay_base::quote::visible::is_active;

const FAMILY: &str = "Helvetica, Arial, 'DejaVu Sans', sans-serif";

pub(super) fn svg(drawing: &Drawing) -> String {
    let (width, height) = (number(drawing.width), number(drawing.height));
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}pt\" height=\"{height}pt\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"{FAMILY}\" role=\"img\">\n<title>{}</title>\n<desc>{}</desc>\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n",
        escaped(&drawing.title),
        escaped(&drawing.about),
    );
    drawing.shapes.iter().for_each(|each| shape(&mut text, each));
    text.push_str("</svg>\n");
    text
}

fn shape(text: &mut String, shape: &Shape) {
    // Writing to a string cannot fail.
    let _ = match shape {
        Shape::Lines { stretches, width, colour, dash } => {
            let mut path = String::new();
            for stretch in stretches {
                push_stretch(&mut path, stretch);
            }
            let dashes: Vec<String> = dash.iter().map(|length| number(*length)).collect();
            let dash = if dash.is_empty() {
                String::new()
            } else {
                format!(" stroke-dasharray=\"{}\"", dashes.join(" "))
            };
            writeln!(
                text,
                "<path d=\"{path}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" stroke-linejoin=\"round\"{dash}/>",
                hex(*colour),
                number(*width)
            )
        }
        Shape::Area { outline, colour } => {
            let mut path = String::new();
            push_stretch(&mut path, outline);
            writeln!(text, "<path d=\"{path}Z\" fill=\"{}\"/>", hex(*colour))
        }
        Shape::Rect { x, y, width, height, colour } => {
            let [x, y, width, height] = [x, y, width, height].map(|each| number(*each));
            let fill = hex(*colour);
            writeln!(
                text,
                "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"{fill}\"/>"
            )
        }
        Shape::Dot { x, y, radius, colour } => {
            let [x, y, radius] = [x, y, radius].map(|each| number(*each));
            writeln!(text, "<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\" fill=\"{}\"/>", hex(*colour))
        }
        Shape::Text { x, y, size, anchor, up, colour, text: words } => {
            let anchor = match anchor {
                Anchor::Start => "start",
                Anchor::Middle => "middle",
                Anchor::End => "end",
            };
            let [x, y, size] = [x, y, size].map(|each| number(*each));
            let turn = if *up { format!(" transform=\"rotate(-90 {x} {y})\"") } else { String::new() };
            writeln!(
                text,
                "<text x=\"{x}\" y=\"{y}\" font-size=\"{size}\" text-anchor=\"{anchor}\" fill=\"{}\"{turn}>{}</text>",
                hex(*colour),
                escaped(words)
            )
        }
    };
}

fn push_stretch(path: &mut String, points: &[(f64, f64)]) {
    for (index, (x, y)) in points.iter().enumerate() {
        let _ = write!(path, "{}{} {}", if index == 0 { 'M' } else { 'L' }, number(*x), number(*y));
    }
}

fn hex(Colour(red, green, blue): Colour) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// A hundredth of a point is finer than any printer.
fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// Text that means nothing in markup; what XML cannot hold is left out.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in
        text.chars().filter(|c| !is_active(*c) && !c.is_control() && *c != '\u{fffe}' && *c != '\u{ffff}')
    {
        match c {
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '&' => safe.push_str("&amp;"),
            '"' => safe.push_str("&quot;"),
            c => safe.push(c),
        }
    }
    safe
}
