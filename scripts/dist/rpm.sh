#!/bin/sh
# A package for Fedora, RHEL, openSUSE and their relatives from a staged installation.
#
# usage: rpm.sh ROOT MACHINE OUT
set -eu
staged=$(cd "$1" && pwd) machine=$2 out=$3
top=$(cd "$(dirname "$0")/../.." && pwd)
. "$top/scripts/dist/about.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
# Directories that the package of the file system does not own are this one's too, or removal would leave them.
(cd "$staged" && find usr -type f | sort | sed 's|^|/|; s|^.*/LICENSE-|%license &|') >"$work/files"
(cd "$staged" && find usr -mindepth 1 -type d | sort | sed 's|^|%dir /|' |
    grep -vxE '%dir /usr/(bin|lib|share|share/doc|share/man|share/man/man1)') >>"$work/files"
# A static program needs nothing; of another, rpmbuild finds out which libraries it needs.
requires=yes
if ! readelf --program-headers "$staged/usr/bin/assay" | grep -q INTERP; then requires=no; fi
cat >"$work/assay.spec" <<EOF
Name: assay
Version: $version
Release: 1
Summary: $summary
License: $licence
URL: $homepage
AutoReqProv: $requires
%description
$description
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
