//! The workload language: source text to a compiled workload
