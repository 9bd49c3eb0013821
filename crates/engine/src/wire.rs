//! How do a request and a reply say who they are (`X-Assay`)?
