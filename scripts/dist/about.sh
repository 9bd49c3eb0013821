# What packages say of Assay: sourced by the scripts that make them, with $top set to the top of the source tree. Version, licence and
# address are those of Cargo.toml.
about() { sed -n "s/^$1 = \"\(.*\)\"/\1/p" "$top/Cargo.toml" | head -n 1; }
version=$(about version)
licence=$(about license)
homepage=$(about repository)
summary='Measures how fast, how effective and how correct a caching proxy is'
description='Assay sends a proxy a known stream of requests, checks the body of every
response byte for byte, counts the traffic on both sides, and reports the results.'
maintainer=${MAINTAINER:-The Assay developers <assay@users.noreply.github.com>}
