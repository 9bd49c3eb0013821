//! Terminal summary, JSON summary and HTML report
