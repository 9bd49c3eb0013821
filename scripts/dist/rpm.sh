#!/bin/sh
# A package for Fedora, RHEL, openSUSE and their relatives from a staged installation.
#
# usage: rpm.sh ROOT VERSION MACHINE OUT
set -eu
staged=$(cd "$1" && pwd) version=$2 machine=$3 out=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
(cd "$staged" && find usr -type f | sort | sed 's|^|/|') >"$work/files"
cat >"$work/assay.spec" <<EOF
Name: assay
Version: $version
Release: 1
Summary: Measures how fast, how effective and how correct a caching proxy is
License: MIT OR Apache-2.0
URL: https://github.com/assay-bench/assay
AutoReqProv: no
%description
Assay sends a proxy a known stream of requests, checks every byte of every
response, counts the traffic on both sides, and reports the results.
%install
cp -a "$staged/." %{buildroot}
%files -f $work/files
%defattr(-, root, root)
EOF
# The program is stripped, manual pages are compressed: nothing is to be done with the files. Dates, host and identifiers of the build
# would differ from one build to the next.
rpmbuild -bb --quiet --target "$machine" \
    --define "_topdir $work" --define "_rpmdir $work/rpms" --define "_buildhost reproducible" \
    --define "use_source_date_epoch_as_buildtime 1" --define "clamp_mtime_to_source_date_epoch 1" \
    --define "__os_install_post %{nil}" --define "debug_package %{nil}" --define "_build_id_links none" \
    --define "_binary_payload w9.gzdio" "$work/assay.spec"
cp "$work/rpms/$machine/assay-$version-1.$machine.rpm" "$out"
