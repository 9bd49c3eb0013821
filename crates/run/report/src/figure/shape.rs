//! The shapes that drawings are made of. Points are 1/72 of an inch, from the upper left corner.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Colour(pub u8, pub u8, pub u8);

pub(super) const INK: Colour = Colour(0x1a, 0x1a, 0x1a);
pub(super) const SOFT: Colour = Colour(0x59, 0x59, 0x59);
pub(super) const GRID: Colour = Colour(0xe2, 0xe2, 0xe2);
pub(super) const BAND: Colour = Colour(0xf3, 0xf3, 0xf3);

impl Colour {
    /// The colour on white paper when it covers only a share.
    pub(super) fn with_opacity(self, share: f64) -> Self {
        let mix = |part: u8| (255.0 - (255.0 - f64::from(part)) * share.clamp(0.0, 1.0)).round() as u8;
        Self(mix(self.0), mix(self.1), mix(self.2))
    }
}

/// Point of a text that is at its coordinates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A piece of a drawing; later ones are on top.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Shape {
    /// Stretches of a line; `dash` is lengths of ink and of none in turn, empty: all ink.
    Lines {
        stretches: Vec<Vec<(f64, f64)>>,
        width: f64,
        colour: Colour,
        dash: Vec<f64>,
    },
    Area {
        outline: Vec<(f64, f64)>,
        colour: Colour,
    },
    Rect {
        x: f64,
        y: f64,
        width: f64,
        height: f64,
        colour: Colour,
    },
    Dot {
        x: f64,
        y: f64,
        radius: f64,
        colour: Colour,
    },
    /// Words; `up`: they run from the bottom to the top.
    Text {
        x: f64,
        y: f64,
        size: f64,
        anchor: Anchor,
        up: bool,
        colour: Colour,
        text: String,
    },
}

/// A figure, ready to be written.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Drawing {
    pub title: String,
    pub about: String,
    pub width: f64,
    pub height: f64,
    pub shapes: Vec<Shape>,
}

impl Drawing {
    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), width: f64, colour: Colour) {
        let stretches = vec![vec![from, to]];
        self.shapes.push(Shape::Lines { stretches, width, colour, dash: Vec::new() });
    }

    pub(super) fn text(&mut self, at: (f64, f64), size: f64, anchor: Anchor, colour: Colour, text: &str) {
        let text = text.to_owned();
        self.shapes.push(Shape::Text { x: at.0, y: at.1, size, anchor, up: false, colour, text });
    }

    pub(super) fn vertical_text(
        &mut self,
        at: (f64, f64),
        size: f64,
        anchor: Anchor,
        colour: Colour,
        text: &str,
    ) {
        let text = text.to_owned();
        self.shapes.push(Shape::Text { x: at.0, y: at.1, size, anchor, up: true, colour, text });
    }
}
