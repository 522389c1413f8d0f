#!/usr/bin/env bash
# Makes a release in the new folder FOLDER from what the preset `release` has built: the sources,
# the bundle, the Debian packages, and their digests in SHA256SUMS, signed with the Ed25519 key KEY
# (docs/install.md, "A release"). Refuses sources with changes that are not committed.
#
# usage: release.sh FOLDER KEY
set -euo pipefail

if (($# != 2)); then
  echo "usage: ./dev release DIR KEY (a new folder, and a key of trireme audit keygen)" >&2
  exit 2
fi
here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
source=$(realpath "$here/../..")
readonly here source build=$source/build/release
read -r _ version commit < <("$build/trireme" --version)
readonly version commit
if [[ $commit == *dirty* || $commit == *unknown* ]]; then
  echo "release: the sources have changes that are not in a commit $commit: commit them" >&2
  exit 77
fi
if [[ -e $1 && -n $(ls -A "$1") ]]; then
  echo "release: $1 is not empty: name a new folder" >&2
  exit 77
fi
mkdir -p "$1"
folder=$(realpath "$1")
key=$(realpath "$2")
readonly folder key

git -C "$source" -c safe.directory='*' archive --format=tar --prefix="trireme-$version/" HEAD |
  gzip -9n >"$folder/trireme-$version.tar.gz"
"$here/deb.sh" release "$folder"
"$here/bundle.sh" "$build" "$folder"
cd "$folder"
sha256sum -- *.tar.gz *.deb >SHA256SUMS
"$build/trireme" audit sign SHA256SUMS --key "$key"
