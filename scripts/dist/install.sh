#!/bin/sh
# Installs Assay from the directory that this script is in, or removes what it installed. It asks nothing.
#
# usage: install.sh [--prefix DIR]     default: /usr/local as root, else ~/.local
#        install.sh --uninstall [--prefix DIR]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
uninstall=no
if [ "$(id -u)" -eq 0 ]; then prefix=/usr/local; else prefix=${HOME:?}/.local; fi
while [ $# -gt 0 ]; do
    case $1 in
        --prefix) prefix=${2:?--prefix needs a directory}; shift 2 ;;
        --uninstall) uninstall=yes; shift ;;
        *) echo "usage: install.sh [--uninstall] [--prefix DIR]" >&2; exit 2 ;;
    esac
done
case $prefix in /*) ;; *) prefix=$PWD/$prefix ;; esac
# What was installed, a path below the prefix in each line, and the directories that were made for it.
list=$prefix/share/assay/installed

remove() {
    [ -e "$list" ] || return 0
    sed -n 's/^file //p' "$list" | while IFS= read -r file; do rm -f "$prefix/$file"; done
    directories=$(sed -n 's/^directory //p' "$list")
    made_prefix=$(sed -n 's/^prefix //p' "$list")
    rm -f "$list"
    # The innermost first. One in which others have put something stays.
    printf '%s\n' "$directories" | sort -r | while IFS= read -r directory; do
        [ -n "$directory" ] && rmdir "$prefix/$directory" 2>/dev/null || true
    done
    [ "$made_prefix" != made ] || rmdir "$prefix" 2>/dev/null || true
}

if [ "$uninstall" = yes ]; then
    [ -e "$list" ] || { echo "install.sh: nothing is installed in $prefix ($list is not there)" >&2; exit 1; }
    remove
    echo "removed Assay from $prefix"
    exit
fi

# An earlier version may have had files that this one does not have.
remove
new=$(mktemp)
trap 'rm -f "$new"' EXIT INT TERM
make() {
    [ -d "$prefix/$1" ] && return
    case $1 in */*) make "${1%/*}" ;; esac
    mkdir -p "$prefix/$1"
    echo "directory $1" >>"$new"
}
[ -d "$prefix" ] || echo "prefix made" >>"$new"
make share/assay
(cd "$here" && find . -type f ! -path ./install.sh | sed 's|^\./||' | sort) >"$new.files"
while IFS= read -r file; do
    make "${file%/*}"
    cp -p "$here/$file" "$prefix/$file"
    echo "file $file" >>"$new"
done <"$new.files"
rm -f "$new.files"
# Units name the program where packages put it.
for unit in "$prefix"/lib/systemd/system/assay-*.service; do
    sed "s|/usr/bin/assay|$prefix/bin/assay|" "$unit" >"$new.unit"
    cat "$new.unit" >"$unit"
    rm -f "$new.unit"
done
cat "$new" >"$list"
echo "installed Assay in $prefix; to remove it: $here/install.sh --uninstall --prefix $prefix"
case :$PATH: in *:"$prefix/bin":*) ;; *) echo "note: $prefix/bin is not in PATH" ;; esac
