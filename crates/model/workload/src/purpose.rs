//! What the hashes of a workload decide: each decision has a purpose of its own, so that two decisions about one thing do
//! not agree by chance.

/// Purpose of a hash. The numbers are arbitrary and must stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum Purpose {
    Object = 0x6f62_6a01,
    Size = 0x7369_7a02,
    /// Whether an object may be cached.
    Cachable = 0x6361_6303,
    /// Whether it has a checksum.
    Checksum = 0x6368_6b04,
    Extension = 0x6578_7405,
    Prefix = 0x7072_6506,
    /// Length of the life cycle, birth, and which of its choices an object takes.
    Life = 0x6c69_6607,
    /// Shift of one modification.
    Jitter = 0x6a69_7408,
    /// Number of embedded objects.
    EmbeddedCount = 0x656d_6309,
    /// Type of an embedded object.
    EmbeddedType = 0x656d_740a,
    /// Whether and how an embedded object is fetched.
    EmbeddedFetch = 0x656d_660b,
    /// The bytes of the pool.
    Pool = 0x706f_6f0c,
    /// Offset of a body in the pool.
    BodyOffset = 0x626f_640d,
    /// The stamp at the start of a body.
    Stamp = 0x7374_610e,
    /// A public world: its first visits, its hot set.
    World = 0x736c_6f0f,
    /// Robot that makes a first visit.
    Owner = 0x6f77_6e10,
    /// A robot's own arrivals.
    Arrival = 0x6172_7211,
    /// Type, method and body of a request.
    Request = 0x7265_7112,
    /// The origin of a private object.
    PrivateOrigin = 0x7072_6f13,
    /// Position of the hot set.
    HotSet = 0x686f_7414,
    /// The order in which robots live and die.
    Rank = 0x7261_6e15,
    /// Requests of a best-effort robot.
    Closed = 0x636c_6f16,
    /// Revisits of a best-effort robot.
    ClosedRevisit = 0x636c_7217,
    Digest = 0x6469_6718,
    /// Draws of other rooms that follow from a robot, an origin or a connection.
    Other = 0x6f74_6819,
    /// The bytes of the pool of text.
    TextPool = 0x7470_6f1a,
    /// The bytes of the pool of words.
    WordPool = 0x7770_6f1b,
    /// Whether an object has a body of its own.
    Unique = 0x756e_691c,
    /// The body that objects of a content type share.
    SharedBody = 0x7368_621d,
    /// File of a body, or entry at which it starts.
    File = 0x6669_6c1e,
    /// Whether lines are put into a body, which, and where.
    Injection = 0x696e_6a1f,
    /// Requested part of an object.
    Range = 0x726e_6720,
    /// Whether a request meets a fault on purpose, and which.
    Fault = 0x666c_7421,
    /// Whether and where a robot breaks off a body.
    RobotAbort = 0x7261_6222,
    /// Whether and where an origin breaks off a body.
    OriginAbort = 0x6f61_6223,
    /// Whether a robot waits for 100 before it sends a body.
    Expect = 0x6578_7024,
    /// Whether an origin lets a body come.
    BodyAllowed = 0x6261_6c25,
    /// Body that a request sends again.
    RequestBody = 0x7262_6f26,
    /// Fields that a request carries beside its own.
    RequestHeader = 0x7268_6427,
    /// Fields that a response carries beside its own.
    ResponseHeader = 0x7065_7028,
    /// Cookies that a response sets, and those that a robot keeps.
    Cookie = 0x636f_6f29,
    /// Whether and whereto a request is redirected.
    Redirect = 0x7265_642a,
    /// Whether an object is protected.
    Auth = 0x6175_742b,
    User = 0x7573_722c,
    /// Whether the password is a wrong one.
    WrongPassword = 0x7770_772d,
    /// Busy and idle periods.
    Session = 0x7365_732e,
    /// Pause of a robot between requests.
    Pause = 0x7061_752f,
    /// Lifetime of an xact.
    Lifetime = 0x6c66_7430,
    /// URL of a trace.
    Foreign = 0x666f_7231,
    /// Times between requests that are no Poisson arrivals.
    Renewal = 0x726e_7732,
    /// Revisits with size preference.
    SizePreference = 0x737a_7033,
    /// Whether an idle connection to a substitute is taken.
    Substitute = 0x7375_6234,
    /// Time that an origin gives a request.
    ServerLifetime = 0x736c_6635,
}

impl From<Purpose> for u64 {
    #[inline]
    fn from(purpose: Purpose) -> Self {
        purpose as Self
    }
}

#[cfg(test)]
mod tests {
    use assay_base::random::hash;

    use super::*;

    #[test]
    fn the_bits_never_change() {
        assert_eq!(hash(Purpose::Object, &[1, 2, 3]), 0x0e95_7ba4_ca59_be1c);
    }
}
