#!/usr/bin/env bash
# Makes FOLDER/trireme_VERSION_amd64.deb, and trireme-dbgsym with the debug information, from the
# program that PRESET has built. Runs debhelper (src/packaging/debian/rules) in a folder of its own,
# so that the sources stay as they are. The same build gives the same bytes.
#
# usage: deb.sh PRESET FOLDER
set -euo pipefail

source=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")
folder=$(realpath "$2")
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
readonly source folder stage

mkdir "$stage/trireme"
cp -R "$source/src/packaging/debian" "$stage/trireme/debian"
cd "$stage/trireme"
built=$("$source/build/$1/trireme" --version | awk '{print $2; exit}')
packaged=$(dpkg-parsechangelog -S Version)
if [[ $packaged != "$built" ]]; then
  echo "deb: the program is version $built, and src/packaging/debian/changelog says $packaged" >&2
  exit 2
fi
SOURCE_DATE_EPOCH=$("$source/src/packaging/source_date.sh")
export SOURCE_DATE_EPOCH
umask 022
SOURCE=$source PRESET=$1 dpkg-buildpackage --build=binary --no-sign >"$stage/log" 2>&1 || {
  tail -n 30 "$stage/log" >&2
  exit 1
}
cp "$stage"/*.deb "$folder/"
for package in "$stage"/*.deb; do
  printf '%s/%s: %s\n' "$folder" "${package##*/}" "$(du -h "$package" | cut -f1)"
done
