//! What an object is like. [`Universe`] derives it from the id and the seed alone.
//!
//! # Objects and their bytes
//!
//! An object is an `ObjectId`: origin, content type, space, serial. `Universe::object` hashes its *key* (64 bits,
//! from the seed and the id) and from that its size, cachability, life cycle, extension. Nothing is stored.
//!
//! *Body.* `Universe::body(key, version)` defines the bytes: a 16-byte stamp (key and version, mixed), then a static
//! pool (256 KiB from the seed), read in a circle from an offset hashed from key and version. A body shorter than
//! 16 bytes is the start of its stamp. The origin writes slices of the pool; the robot compares against the same.
//!
//! *Life.* Times are whole Unix seconds, counted from the start instant of the run (`at_unix_s`), so two runs of one
//! seed see the same modifications at the same offsets. Version *v* is the number of modifications since the epoch
//! (0 at the start); `life(object, now)` gives version, last and next modification, and the `Expires` of a response
//! made now. `Last-Modified` and `Expires` are sent for cachable objects only. A cachable object is sent with
//! `Cache-Control: public` (and `max-age` of a year if it has no life cycle and therefore never changes), any other with
//! `Cache-Control: private, no-cache, no-store`.
//!
//! *Path.* `[prefix]/w<world 8 hex>/t<content 2+ hex>/<space>_<serial 16 hex>[extension]`; `Universe::path` writes it,
//! `Universe::parse_path` reads it back, and refuses any path that it would not have written. `/assay/health` (with any query) returns 200
//! to anyone and belongs to no universe; its body names the origin that responds (`origin AUTHORITY`), as `Host` and address decide it for an
//! object. `lab::readiness` compares that with the origin that it requested, and does not start a run through a target that mixes them up; a
//! response without such a line says nothing, and passes.

use std::sync::Arc;

use crate::Purpose;
use crate::body::{BodyTable, FileBytes, Pool, pool_needs};
use crate::distribution::Sampler;
use crate::life::{Life, LifeLaw};
use crate::mix::GroupMix;
use crate::model::{
    BodySource, ContentIndex, Distribution, OriginIndex, Pace, RobotGroup, RobotIndex, Server, Workload,
};
use crate::object::{MOST_EMBEDDED, Object, ObjectId, Space};
use crate::periods::SessionTable;
use crate::picker::Picker;
use crate::server::ServerTable;
use crate::trace::Trace;
use crate::users::Users;
pub use crate::validate::UniverseError;
use crate::validate::validate;
use crate::variants::has_variants;
use crate::xact::XactId;
use assay_base::random::{Rng, finalize, fold, hash, unit_of};

/// Choices about a universe that are not the workload's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UniverseOptions {
    /// Treat private interest as public, as Web Polygraph since 3.6 does.
    pub private_as_public: bool,
}

/// Everything that exists for one workload and seed. Immutable; share it between threads in an `Arc`.
#[derive(Debug)]
pub struct Universe {
    workload: Arc<Workload>,
    seed: u64,
    world: u32,
    options: UniverseOptions,
    /// Start of every hash of an object.
    object_seed: u64,
    robot_count: u32,
    contents: Vec<ContentTable>,
    groups: Vec<GroupTable>,
    servers: Vec<ServerTable>,
    users: Users,
    trace: Trace,
    pool: Pool,
    /// Some response may say `Vary`.
    pub(crate) has_variants: bool,
}

/// A content type, ready for draws.
#[derive(Debug)]
pub(crate) struct ContentTable {
    size: Sampler,
    /// The drawn size is not final: a page has room for its links, and a file has its own.
    shapes_size: bool,
    cachable: f64,
    checksum: f64,
    life: Option<LifeLaw>,
    pub(crate) prefixes: Picker<usize>,
    pub(crate) extensions: Picker<usize>,
    pub(crate) body: BodyTable,
    pub(crate) embedded: Option<(Sampler, Picker<ContentIndex>)>,
}

/// A group of robots.
#[derive(Debug)]
pub(crate) struct GroupTable {
    pub(crate) first: RobotIndex,
    pub(crate) count: u32,
    pub(crate) mix: GroupMix,
    /// Share of its launches that go to the robot's private world.
    pub(crate) private_share: f64,
    /// Robots in the order in which a growing population wakes them.
    pub(crate) by_rank: Vec<RobotIndex>,
    /// Place of each robot of the group in that order.
    pub(crate) ranks: Vec<u32>,
    /// Requests per second of a living robot at load 1, on average over its busy and idle periods; none: it
    /// waits for responses.
    pub(crate) mean_rate: Option<f64>,
    /// The same while it is busy.
    pub(crate) rate: Option<f64>,
    /// Seconds between a robot's requests at load 1; none: exponential.
    pub(crate) between: Option<Sampler>,
    /// Share of its launches that go to the trace.
    pub(crate) foreign_share: f64,
    pub(crate) cookie_limit: Sampler,
    pub(crate) lifetime: Option<Sampler>,
    /// Time between a response and the next request.
    pub(crate) pause: Option<Sampler>,
    pub(crate) session: Option<SessionTable>,
}

impl Universe {
    /// The universe of a workload and a seed. `world` is the tag in every path, `options` what else was chosen.
    ///
    /// Bodies that are made of files are not what they will be: who sends or checks bodies uses
    /// [`Universe::with_files`]. Sizes, paths and streams are right without.
    pub fn new(
        workload: Arc<Workload>,
        seed: u64,
        world: u32,
        options: UniverseOptions,
    ) -> Result<Self, UniverseError> {
        Self::build(workload, seed, world, options, None)
    }

    /// The same with the bytes of the files that the workload names, which must be those that it was compiled with.
    pub fn with_files(
        workload: Arc<Workload>,
        seed: u64,
        world: u32,
        options: UniverseOptions,
        files: &FileBytes,
    ) -> Result<Self, UniverseError> {
        Self::build(workload, seed, world, options, Some(files))
    }

    fn build(
        workload: Arc<Workload>,
        seed: u64,
        world: u32,
        options: UniverseOptions,
        files: Option<&FileBytes>,
    ) -> Result<Self, UniverseError> {
        validate(&workload)?;
        let mut first = 0;
        let groups = workload
            .robots
            .iter()
            .map(|group| {
                let table = GroupTable::new(&workload, group, first, seed, options);
                first += table.count;
                table
            })
            .collect();
        let content = |index: usize| ContentTable::new(&workload, index as ContentIndex);
        Ok(Self {
            seed,
            world,
            options,
            object_seed: hash(Purpose::Object, &[seed]),
            robot_count: first,
            contents: (0..workload.contents.len()).map(content).collect(),
            groups,
            servers: workload.servers.iter().map(ServerTable::new).collect(),
            users: Users::new(&workload),
            trace: Trace::new(&workload),
            pool: Pool::with_files(seed, &pool_needs(&workload), &workload, files)?,
            has_variants: has_variants(&workload),
            workload,
        })
    }

    pub fn workload(&self) -> &Arc<Workload> {
        &self.workload
    }

    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The tag in every path.
    pub fn world(&self) -> u32 {
        self.world
    }

    pub fn options(&self) -> UniverseOptions {
        self.options
    }

    /// The bytes that all bodies are cut from.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Number of robots in all groups.
    pub fn robot_count(&self) -> u32 {
        self.robot_count
    }

    /// True if some robots send their next request when they have a response.
    pub(crate) fn has_closed_robots(&self) -> bool {
        self.workload.robots.iter().any(|group| group.pace.is_closed())
    }

    /// The index of a robot's group in the workload; none when there is no such robot.
    pub fn group_of(&self, robot: RobotIndex) -> Option<usize> {
        if robot >= self.robot_count {
            return None;
        }
        // An empty group starts where the next one does: the last that starts at or before the robot has it.
        Some(self.groups.partition_point(|group| group.first <= robot) - 1)
    }

    /// Everything about an object that never changes.
    ///
    /// # Panics
    ///
    /// If the id names a content type that the workload does not have; ids from this universe ([`Universe::parse_path`], its streams) never
    /// do.
    #[inline]
    pub fn object(&self, id: ObjectId) -> Object {
        let key = self.key(&id);
        let content = &self.contents[usize::from(id.content)];
        let mut size_bytes = content.size.size(&mut Rng::new(key ^ const { finalize(Purpose::Size as u64) }));
        if content.shapes_size {
            size_bytes = self.shaped_size(&id, key, size_bytes);
        }
        Object {
            id,
            key,
            size_bytes,
            cachable: chance(key, const { finalize(Purpose::Cachable as u64) }, content.cachable),
            checksum: chance(key, const { finalize(Purpose::Checksum as u64) }, content.checksum),
        }
    }

    /// The size of a page, which has room for its links, or of a file, which has its own.
    fn shaped_size(&self, id: &ObjectId, key: u64, drawn_bytes: u64) -> u64 {
        if let Some((set, file)) = self.content(id.content).body.file_of(&self.workload, key) {
            return set.files.get(file).map_or(0, |file| file.bytes);
        }
        let content = self.content(id.content);
        let links = if id.space.holds_pages() { content.link_count(key) } else { 0 };
        drawn_bytes.max(content.body.least_bytes(links))
    }

    #[inline]
    pub(crate) fn key(&self, id: &ObjectId) -> u64 {
        let (space, robot) = match id.space {
            Space::Public => (0, 0),
            Space::Private(robot) => (1, robot),
            Space::RequestBody(robot) => (2, robot),
            Space::BestEffort(robot) => (3, robot),
            // The kinds of pages in robots' spaces end at 8.
            Space::Foreign => (9, 0),
            Space::InPublicPage { page } => (4 | (u64::from(page) << 8), 0),
            Space::InRobotPage { page, robot, kind } => {
                ((5 + u64::from(kind)) | (u64::from(page) << 8), robot)
            }
        };
        let what = u64::from(id.origin) | (u64::from(id.content) << 16) | (u64::from(robot) << 32);
        fold(fold(fold(self.object_seed, what), space), id.serial)
    }

    /// The object's modifications as seen `now_s` seconds after the start of the run.
    ///
    /// # Panics
    ///
    /// As [`Universe::object`].
    pub fn life(&self, object: &Object, now_s: i64) -> Life {
        let content = &self.contents[usize::from(object.id.content)];
        content.life.as_ref().map_or_else(Life::default, |life| life.at(object.key, now_s))
    }

    /// True when a robot of this group is alive while `population` (0 to 1) of its group is. At least one is.
    pub fn is_alive(&self, robot: RobotIndex, population: f64) -> bool {
        let Some(group) = self.group_of(robot) else { return false };
        let table = &self.groups[group];
        table.ranks[(robot - table.first) as usize] < living(table.count, population)
    }

    pub(crate) fn content(&self, index: ContentIndex) -> &ContentTable {
        &self.contents[usize::from(index)]
    }

    pub(crate) fn groups(&self) -> &[GroupTable] {
        &self.groups
    }

    pub(crate) fn servers(&self) -> &[ServerTable] {
        &self.servers
    }

    pub(crate) fn users(&self) -> &Users {
        &self.users
    }

    pub(crate) fn trace(&self) -> &Trace {
        &self.trace
    }

    /// An origin's kind; none when there is no such origin.
    #[inline]
    pub(crate) fn server_of(&self, origin: OriginIndex) -> Option<(&Server, &ServerTable)> {
        let server = usize::from(self.workload().origins.get(usize::from(origin))?.server);
        Some((&self.workload().servers[server], &self.servers()[server]))
    }

    /// Draws for one purpose of one xact.
    #[inline]
    pub(crate) fn draws(&self, purpose: Purpose, xact: XactId) -> Rng {
        Rng::of(purpose, &[self.seed(), u64::from(xact.robot), xact.number, u64::from(xact.place)])
    }

    /// A number for one purpose of one object.
    #[inline]
    pub(crate) fn unit(&self, purpose: Purpose, object: &Object) -> f64 {
        unit_of(hash(purpose, &[object.key]))
    }
}

/// Robots of a group that are alive at a population factor.
pub(crate) fn living(count: u32, population: f64) -> u32 {
    (libm::round(population.clamp(0.0, 1.0) * f64::from(count)) as u32).max(u32::from(count > 0))
}

#[inline]
fn chance(key: u64, purpose: u64, probability: f64) -> bool {
    unit_of(fold(key, purpose)) < probability
}

impl ContentTable {
    /// Number of embedded objects that a page with this key has.
    #[inline]
    pub(crate) fn link_count(&self, key: u64) -> u16 {
        let Some((count, _)) = &self.embedded else { return 0 };
        let draw = count.count(&mut Rng::of(Purpose::EmbeddedCount, &[key]));
        draw.min(u64::from(MOST_EMBEDDED)) as u16
    }

    fn new(workload: &Workload, index: ContentIndex) -> Self {
        let content = &workload.contents[usize::from(index)];
        let indexed = |weighted: &crate::model::Weighted<String>| {
            Picker::new(weighted.items().iter().map(|i| i.1).enumerate())
        };
        Self {
            size: content.size_bytes.sampler(),
            shapes_size: content.embedded.is_some() || matches!(content.body.source, BodySource::Files(_)),
            body: BodyTable::new(workload, index),
            cachable: content.cachable,
            checksum: content.checksum,
            life: content.life_cycle.as_ref().map(LifeLaw::new),
            prefixes: indexed(&content.prefixes),
            extensions: indexed(&content.extensions),
            embedded: content
                .embedded
                .as_ref()
                .map(|e| (e.count.sampler(), Picker::from_weighted(&e.contents))),
        }
    }
}

impl GroupTable {
    pub(crate) fn robots(&self) -> std::ops::Range<RobotIndex> {
        self.first..self.first + self.count
    }

    fn new(
        workload: &Workload,
        group: &RobotGroup,
        first: RobotIndex,
        seed: u64,
        options: UniverseOptions,
    ) -> Self {
        let count = group.count();
        let mut by_rank: Vec<RobotIndex> = (first..first + count).collect();
        by_rank.sort_by_key(|robot| (hash(Purpose::Rank, &[seed, u64::from(*robot)]), *robot));
        let mut ranks = vec![0; count as usize];
        for (rank, robot) in by_rank.iter().enumerate() {
            ranks[(robot - first) as usize] = rank as u32;
        }
        let session = group.session.as_ref().map(|session| SessionTable::new(session, group));
        let busy_share = session.as_ref().map_or(1.0, |session| session.busy_share);
        Self {
            first,
            count,
            mean_rate: group.pace.per_second().map(|rate| rate * busy_share),
            rate: group.pace.per_second(),
            between: match &group.pace {
                Pace::Renewal(between_s) => Some(between_s.sampler()),
                Pace::BestEffort | Pace::Think(_) | Pace::Rate { .. } => None,
            },
            mix: GroupMix::new(workload, group),
            private_share: if options.private_as_public { 0.0 } else { group.private_share },
            by_rank,
            ranks,
            foreign_share: if workload.foreign.is_empty() { 0.0 } else { group.foreign_share },
            cookie_limit: group.cookies.limit.sampler(),
            lifetime: group.lifetime_s.as_ref().map(Distribution::sampler),
            pause: match &group.pace {
                Pace::Think(pause_s) => Some(pause_s.sampler()),
                Pace::BestEffort | Pace::Renewal(_) | Pace::Rate { .. } => None,
            },
            session,
        }
    }
}
