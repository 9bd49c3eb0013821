//! Test beds: real proxies, role processes, placement, host metrics
