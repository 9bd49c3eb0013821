//! The origins: what answers the requests that reach them?
