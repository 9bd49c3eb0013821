//! A drawing as PNG, 300 dots per inch, with the letters of DejaVu Sans. And how wide words are.

use tiny_skia::{Color, FillRule, Paint, Path, PathBuilder, Pixmap, Stroke, StrokeDash, Transform};
use ttf_parser::{Face, OutlineBuilder};

use super::shape::{Anchor, Colour, Drawing, Shape};

const DOTS_PER_POINT: f32 = 300.0 / 72.0;
/// The chunk that says so: 11,811 dots per metre.
const RESOLUTION: &[u8] = b"\x00\x00\x00\x09pHYs\x00\x00.#\x00\x00.#\x01\x78\xa5?v";
/// The signature and the first chunk of a PNG file; the resolution comes right after it.
const HEAD_BYTES: usize = 33;

/// The letters.
pub(super) struct Font(Option<Face<'static>>);

impl Font {
    pub(super) fn new() -> Self {
        // The font is a part of the program; were it unreadable, figures would have no letters.
        Self(Face::parse(dejavu::sans::regular(), 0).ok())
    }

    /// How wide words are, in points.
    pub(super) fn width(&self, text: &str, size: f64) -> f64 {
        let Some(face) = &self.0 else { return text.chars().count() as f64 * size * 0.6 };
        let units: u64 = text.chars().map(|c| u64::from(advance(face, c))).sum();
        units as f64 * size / f64::from(face.units_per_em())
    }
}

fn advance(face: &Face<'_>, c: char) -> u16 {
    let glyph = face.glyph_index(c).unwrap_or_default();
    face.glyph_hor_advance(glyph).unwrap_or_default()
}

/// The whole file; none: it would be too large to draw.
pub(super) fn png(drawing: &Drawing, font: &Font) -> Option<Vec<u8>> {
    let pixels = |points: f64| (points as f32 * DOTS_PER_POINT).round() as u32;
    let mut page = Pixmap::new(pixels(drawing.width), pixels(drawing.height))?;
    page.fill(Color::WHITE);
    for shape in &drawing.shapes {
        draw(&mut page, shape, font);
    }
    let plain = page.encode_png().ok()?;
    let (head, rest) = plain.split_at_checked(HEAD_BYTES)?;
    Some([head, RESOLUTION, rest].concat())
}

fn draw(page: &mut Pixmap, shape: &Shape, font: &Font) {
    let scale = Transform::from_scale(DOTS_PER_POINT, DOTS_PER_POINT);
    match shape {
        Shape::Lines { stretches, width, colour, dash } => {
            let lengths = dash.iter().map(|length| *length as f32).collect();
            let dash = if dash.is_empty() { None } else { StrokeDash::new(lengths, 0.0) };
            let stroke = Stroke { width: *width as f32, dash, ..Stroke::default() };
            if let Some(path) = outline(stretches, false) {
                page.stroke_path(&path, &paint(*colour), &stroke, scale, None);
            }
        }
        Shape::Area { outline: points, colour } => {
            if let Some(path) = outline(std::slice::from_ref(points), true) {
                page.fill_path(&path, &paint(*colour), FillRule::Winding, scale, None);
            }
        }
        Shape::Rect { x, y, width, height, colour } => {
            let rect = tiny_skia::Rect::from_xywh(*x as f32, *y as f32, *width as f32, *height as f32);
            if let Some(rect) = rect {
                page.fill_rect(rect, &paint(*colour), scale, None);
            }
        }
        Shape::Dot { x, y, radius, colour } => {
            if let Some(path) = PathBuilder::from_circle(*x as f32, *y as f32, *radius as f32) {
                page.fill_path(&path, &paint(*colour), FillRule::Winding, scale, None);
            }
        }
        Shape::Words { x, y, size, anchor, up, colour, text } => {
            let before = match anchor {
                Anchor::Start => 0.0,
                Anchor::Middle => font.width(text, *size) / 2.0,
                Anchor::End => font.width(text, *size),
            };
            let turned = if *up { Transform::from_rotate(-90.0) } else { Transform::identity() };
            let place = turned.post_translate(*x as f32, *y as f32).post_concat(scale);
            if let Some(path) = letters(font, text, *size, before) {
                page.fill_path(&path, &paint(*colour), FillRule::Winding, place, None);
            }
        }
    }
}

fn paint(Colour(red, green, blue): Colour) -> Paint<'static> {
    let mut paint = Paint::default();
    paint.set_color_rgba8(red, green, blue, 255);
    paint
}

fn outline(stretches: &[Vec<(f64, f64)>], closed: bool) -> Option<Path> {
    let mut path = PathBuilder::new();
    for stretch in stretches {
        for (index, (x, y)) in stretch.iter().enumerate() {
            let (x, y) = (*x as f32, *y as f32);
            if index == 0 { path.move_to(x, y) } else { path.line_to(x, y) }
        }
        if closed {
            path.close();
        }
    }
    path.finish()
}

/// Outlines of letters, one after the other from `-before` on, standing on the line y = 0.
fn letters(font: &Font, text: &str, size: f64, before: f64) -> Option<Path> {
    let face = font.0.as_ref()?;
    let scale = size as f32 / f32::from(face.units_per_em());
    let mut pen = Pen { path: PathBuilder::new(), x: -before as f32, scale };
    for c in text.chars() {
        face.outline_glyph(face.glyph_index(c).unwrap_or_default(), &mut pen);
        pen.x += f32::from(advance(face, c)) * scale;
    }
    pen.path.finish()
}

struct Pen {
    path: PathBuilder,
    x: f32,
    scale: f32,
}

impl Pen {
    fn at(&self, x: f32, y: f32) -> (f32, f32) {
        (self.x + x * self.scale, -y * self.scale)
    }
}

impl OutlineBuilder for Pen {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.at(x1, y1), self.at(x, y));
        self.path.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2), (x, y)) = (self.at(x1, y1), self.at(x2, y2), self.at(x, y));
        self.path.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}
