//! Content codings of bodies: which one an origin chooses, and how long a body is in it.
//!
//! Byte hit ratios are of bytes as they are sent. What robots received, they count; what a stream *offers* must be known
//! before anything is sent. To code every body that comes due would cost a robot more than all its other work (25 KB of
//! words take about 0.2 ms), so [`CodedSizes`] codes some objects of each type once, before the start, and takes the share
//! that is left of their bytes for all others of a like size. That makes the coded size of an object a pure function of the
//! workload, the seed, the object's type and its size, and costs a look into a table, where there are codings at all.

use assay_http::coding::{self, Accepted, GzipWriter, write_accept_encoding};
use assay_workload::body::{Body, Pool};
use assay_workload::model::{Coding, ContentIndex, OriginIndex, RobotGroup};
use assay_workload::object::{ObjectId, Space};
use assay_workload::{Object, Universe};

/// Larger bodies are not coded where they need not be: a coded body is held in memory while it is sent.
const MOST_CODED_BYTES: u64 = 64 << 20;
/// Sizes of which the larger is less than twice the smaller are alike.
const CLASSES: usize = u64::BITS as usize;
/// Objects of a type that are looked at.
const OBJECTS: u64 = 2048;
/// Most objects of each class of sizes that are coded,
const OBJECTS_OF_CLASS: u32 = 64;
/// and most bytes of them: no more are coded after that.
const BYTES_OF_CLASS: u64 = 1 << 20;
/// The share that is left of a longer body is that of its beginning.
const LONGEST_BYTES: u64 = 1 << 20;

/// Chooses the coding of a body of `bytes` bytes: among those that the client likes best, the origin's first that is
/// none of identity. A request for parts gets those of the identity coding, if it may. None: the client takes none of
/// them.
pub fn choose(offered: &[Coding], accepted: &Accepted, bytes: u64, for_parts: bool) -> Option<Coding> {
    let has_identity = offered.is_empty() || offered.contains(&Coding::Identity);
    let plain = for_parts || bytes > MOST_CODED_BYTES;
    if plain && has_identity && accepted.quality(coding::Coding::Identity) > 0 {
        return Some(Coding::Identity);
    }
    let coded = offered.iter().copied().filter(|coding| *coding != Coding::Identity);
    let mut choice = [coding::Coding::Identity; 2];
    let mut length = 0;
    for coding in coded.chain(has_identity.then_some(Coding::Identity)).take(choice.len()) {
        choice[length] = on_the_wire(coding);
        length += 1;
    }
    accepted.choose(&choice[..length]).map(|coding| match coding {
        coding::Coding::Identity => Coding::Identity,
        coding::Coding::Gzip => Coding::Gzip,
    })
}

/// Name of a coding on the wire.
pub fn on_the_wire(coding: Coding) -> coding::Coding {
    match coding {
        Coding::Identity => coding::Coding::Identity,
        Coding::Gzip => coding::Coding::Gzip,
    }
}

/// Slices of a body.
pub fn chunks<'b>(body: &'b Body, pool: &'b Pool) -> impl Iterator<Item = &'b [u8]> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let chunk = body.chunk(pool, from, usize::MAX);
        from += chunk.len() as u64;
        (!chunk.is_empty()).then_some(chunk)
    })
}

/// Codes a body in gzip, as origins send it and as robots compare parts of it.
pub fn gzip(writer: &mut GzipWriter, body: &Body, pool: &Pool) -> Vec<u8> {
    let mut coded = Vec::new();
    writer.encode(chunks(body, pool), &mut coded);
    coded
}

/// Lower bound on the length of a body of `bytes` bytes in gzip: 18 bytes around a stream (RFC 1952, 2.3) in which two bits stand
/// for 258 bytes at most (RFC 1951, 3.2.5).
pub fn shortest_gzip_bytes(bytes: u64) -> u64 {
    18 + bytes.div_ceil(4 * 258).max(2)
}

/// Upper bound on the length of a body of `bytes` bytes in gzip. Blocks that are stored add five bytes each, and nobody makes them so
/// short that they double a body.
pub fn longest_gzip_bytes(bytes: u64) -> u64 {
    2 * bytes + 1024
}

/// Lengths of bodies as they are sent. Made once, before the start.
#[derive(Debug)]
pub struct CodedSizes {
    /// Codings that robots of each group accept.
    accepted: Vec<Accepted>,
    /// Codings that origins offer of each type, and the share of its bodies that gzip leaves.
    contents: Vec<(Vec<Coding>, Option<Shares>)>,
}

/// Share of a body that gzip leaves, by class of sizes: 0.4 is two fifths.
#[derive(Debug)]
struct Shares([f64; CLASSES]);

impl CodedSizes {
    /// Codes some objects of each type that origins send coded to robots; none: there is no such type.
    pub fn measure(universe: &Universe) -> Option<Self> {
        let workload = universe.workload();
        let accepted: Vec<Accepted> = workload.robots.iter().map(accepted_by).collect();
        let mut gzip = GzipWriter::new();
        let measured = |(index, content): (usize, &assay_workload::model::Content)| {
            let offered = content.body.codings.clone();
            let is_coded =
                accepted.iter().any(|accepted| choose(&offered, accepted, 0, false) == Some(Coding::Gzip));
            let shares = is_coded.then(|| Shares::measure(universe, index as ContentIndex, &mut gzip));
            (offered, shares)
        };
        let contents: Vec<_> = workload.contents.iter().enumerate().map(measured).collect();
        contents.iter().any(|(_, shares)| shares.is_some()).then_some(Self { accepted, contents })
    }

    /// Body bytes that an origin sends of an object to a plain GET of a robot of this group.
    pub fn sent_bytes(&self, group: usize, object: &Object) -> u64 {
        let (offered, shares) = &self.contents[usize::from(object.id.content)];
        let (Some(shares), Some(accepted)) = (shares, self.accepted.get(group)) else {
            return object.size_bytes;
        };
        match choose(offered, accepted, object.size_bytes, false) {
            Some(Coding::Gzip) => shares.coded_bytes(object.size_bytes),
            Some(Coding::Identity) | None => object.size_bytes,
        }
    }
}

impl Shares {
    fn measure(universe: &Universe, content: ContentIndex, gzip: &mut GzipWriter) -> Self {
        let (mut whole, mut left, mut coded) = ([0u64; CLASSES], [0u64; CLASSES], Vec::new());
        let mut objects = [0; CLASSES];
        let origin = home(universe, content);
        for serial in 0..OBJECTS {
            let object = universe.object(ObjectId { origin, content, space: Space::Public, serial });
            let class = class_of(object.size_bytes);
            if objects[class] == OBJECTS_OF_CLASS || whole[class] >= BYTES_OF_CLASS {
                continue;
            }
            let (body, mut taken) = (universe.body(&object, 0), 0);
            let beginning = chunks(&body, universe.pool()).take_while(|chunk| {
                let is_wanted = taken < LONGEST_BYTES;
                taken += if is_wanted { chunk.len() as u64 } else { 0 };
                is_wanted
            });
            coded.clear();
            gzip.encode(beginning, &mut coded);
            objects[class] += 1;
            whole[class] += taken;
            left[class] += coded.len() as u64;
        }
        let measured: Vec<usize> = (0..CLASSES).filter(|class| whole[*class] > 0).collect();
        Self(std::array::from_fn(|class| {
            let nearest = measured.iter().copied().min_by_key(|known| known.abs_diff(class));
            nearest.map_or(1.0, |class| left[class] as f64 / whole[class] as f64)
        }))
    }

    fn coded_bytes(&self, bytes: u64) -> u64 {
        (bytes as f64 * self.0[class_of(bytes)]).round() as u64
    }
}

fn class_of(bytes: u64) -> usize {
    bytes.max(1).ilog2() as usize
}

/// `Accept-Encoding` of a group's robots, read as an origin reads it.
fn accepted_by(group: &RobotGroup) -> Accepted {
    if group.accepts.is_empty() {
        return Accepted::ANYTHING;
    }
    let mut value = Vec::new();
    let accepts: Vec<_> = group.accepts.iter().copied().map(on_the_wire).collect();
    write_accept_encoding(&accepts, &mut value);
    Accepted::parse([value.as_slice()])
}

/// An origin that has objects of a type: where they are matters to the paths of links in them.
fn home(universe: &Universe, content: ContentIndex) -> OriginIndex {
    let workload = universe.workload();
    let has = |server: u16| {
        let contents = workload.servers[usize::from(server)].contents.items();
        contents.iter().any(|(known, share)| *known == content && *share > 0.0)
    };
    let mut origins = (0..).zip(&workload.origins);
    origins.find(|(_, origin)| has(origin.server)).map_or(0, |(index, _)| index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::testing::workload;
    use assay_workload::model::{BodySource, Distribution, Workload};

    fn universe(change: impl FnOnce(&mut Workload)) -> Universe {
        let mut workload = workload();
        workload.contents[0].body.codings = vec![Coding::Identity, Coding::Gzip];
        workload.contents[0].body.source = BodySource::Words;
        workload.contents[0].size_bytes = Distribution::Uniform { low: 200.0, high: 60_000.0 };
        workload.robots[0].accepts = vec![Coding::Gzip];
        change(&mut workload);
        Universe::new(workload.into(), 7, 1, Default::default()).expect("a universe")
    }

    fn object(universe: &Universe, serial: u64) -> Object {
        universe.object(ObjectId { origin: 0, content: 0, space: Space::Public, serial })
    }

    /// Bytes of the coded bodies of many objects that were not measured: predicted, and coded one by one. The largest error
    /// of a single one is given too, as a share of it.
    fn predicted_and_coded(universe: &Universe, version: u64) -> (f64, f64, f64) {
        let sizes = CodedSizes::measure(universe).expect("types are coded");
        let (mut predicted, mut sent, mut worst) = (0, 0, 0.0f64);
        for serial in OBJECTS..OBJECTS + 500 {
            let object = object(universe, serial);
            let (body, mut whole, mut out) = (universe.body(&object, version), Vec::new(), Vec::new());
            while (whole.len() as u64) < body.size() {
                whole.extend_from_slice(body.chunk(universe.pool(), whole.len() as u64, 777));
            }
            GzipWriter::new().encode([&whole[..]], &mut out);
            let expected = sizes.sent_bytes(0, &object);
            predicted += expected;
            sent += out.len() as u64;
            worst = worst.max(expected.abs_diff(out.len() as u64) as f64 / out.len() as f64);
        }
        (predicted as f64, sent as f64, worst)
    }

    #[test]
    fn what_is_offered_is_what_coding_every_body_would_give() {
        for version in [0, 3] {
            let (predicted, sent, worst) = predicted_and_coded(&universe(|_| {}), version);
            // 500 objects, of which single ones are off by up to a fifth where they are a few hundred bytes.
            assert!((predicted / sent - 1.0).abs() < 0.005, "{predicted} {sent}");
            assert!(worst < 0.2, "{worst}");
        }
    }

    #[test]
    fn no_body_is_shorter_in_gzip_than_its_bound() {
        for bytes in [0, 1, 258, 1_000, 10_000_000] {
            let mut coded = Vec::new();
            GzipWriter::new().encode([&vec![0; bytes][..]], &mut coded);
            let bound = shortest_gzip_bytes(bytes as u64);
            assert!(
                (bound..=bound + bound / 10 + 10).contains(&(coded.len() as u64)),
                "{bytes}: {bound} {}",
                coded.len()
            );
        }
    }

    #[test]
    fn what_a_robot_does_not_accept_or_an_origin_does_not_code_goes_out_as_it_is() {
        assert!(CodedSizes::measure(&universe(|w| w.robots[0].accepts.clear())).is_none());
        assert!(CodedSizes::measure(&universe(|w| w.contents[0].body.codings.clear())).is_none());
        let large = universe(|w| w.contents[0].size_bytes = Distribution::Constant((65 << 20) as f64));
        let sizes = CodedSizes::measure(&large).expect("types are coded");
        assert_eq!(
            sizes.sent_bytes(0, &object(&large, 1)),
            65 << 20,
            "more than is coded where it need not be"
        );
        let only = universe(|w| {
            w.contents[0].size_bytes = Distribution::Constant((65 << 20) as f64);
            w.contents[0].body.codings = vec![Coding::Gzip];
        });
        let sizes = CodedSizes::measure(&only).expect("types are coded");
        assert!(sizes.sent_bytes(0, &object(&only, 1)) < 40 << 20);
    }
}
