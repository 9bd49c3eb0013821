//! How is a role's thread started, pinned and joined?
