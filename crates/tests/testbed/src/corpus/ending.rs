//! End of a connection after a case.

/// State of a connection after the requests that were forwarded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Ending {
    /// All bytes are used up, and another request may follow.
    #[default]
    Open,
    /// The connection ends, and what follows is not read.
    Closes,
    Refused {
        /// The status that says so.
        status: u16,
        /// After its head was taken: some of it may have gone on by then.
        in_body: bool,
    },
    /// More has to come.
    Waits { in_body: bool },
}
