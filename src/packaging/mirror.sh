#!/usr/bin/env bash
# Makes a Debian repository in FOLDER with the given packages, all that they depend on, and the
# packages that every Debian has, so that a machine without a network can be installed from it,
# build and run (docs/install.md). Called again, it adds what is new and leaves out what is old.
# apt checks the signatures and digests of what it downloads.
#
# usage: mirror.sh FOLDER PACKAGE...
set -euo pipefail

if (($# < 2)) || [[ -z $1 ]]; then
  echo "usage: ./dev mirror DIR" >&2
  exit 2
fi
command -v dpkg-scanpackages >/dev/null || {
  echo "mirror: dpkg-scanpackages is missing: apt-get install dpkg-dev" >&2
  exit 66
}
mkdir -p "$1"
folder=$(realpath "$1")
readonly folder
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck disable=SC1091
. /etc/os-release
architecture=$(dpkg --print-architecture)
readonly work architecture suite=$VERSION_CODENAME
readonly index=dists/$suite/main/binary-$architecture

# With an empty list of installed packages, apt chooses all that are needed.
: >"$work/status"
mkdir -p "$folder/pool/partial" "$work/archives/partial"
choose() { # ARGUMENT ...
  apt-get -qq -o APT::Sandbox::User=root -o Dir::State::status="$work/status" \
    -o Dir::Cache::archives="$work/archives" --no-install-recommends -y install \
    apt usr-is-merged '?priority(required)' '?essential' "$@" 2>"$work/log" || {
    tail -n 20 "$work/log" >&2
    echo "mirror: apt cannot provide these packages: try apt-get update" >&2
    exit 74
  }
}

# A file keeps its name without an epoch, which would stand there as 1%3a.
choose --print-uris "$@" | awk '{print $2}' >"$work/names"
while read -r name; do
  plain=${name/_*%3a/_}
  if [[ -e $folder/pool/$plain ]]; then
    ln "$folder/pool/$plain" "$work/archives/$name" 2>/dev/null ||
      cp "$folder/pool/$plain" "$work/archives/$name"
  fi
done <"$work/names"
echo "mirror: fetching $(wc -l <"$work/names") packages" >&2
choose --download-only "$@" >/dev/null
rm -rf "$folder/pool" "$folder/dists"
mkdir -p "$folder/pool" "$folder/$index"
while read -r name; do
  mv "$work/archives/$name" "$folder/pool/${name/_*%3a/_}"
done <"$work/names"

# The index of a repository (https://wiki.debian.org/DebianRepository/Format): what is in each
# package, and the digests of that.
cd "$folder"
dpkg-scanpackages --arch "$architecture" pool >"$index/Packages" 2>"$work/log" || {
  cat "$work/log" >&2
  exit 74
}
gzip -9nk "$index/Packages"
cd "dists/$suite"
{
  printf 'Suite: %s\nCodename: %s\nComponents: main\nArchitectures: %s\nDate: %s\nSHA256:\n' \
    "$suite" "$suite" "$architecture" "$(LC_ALL=C date -uR)"
  for file in "${index#"dists/$suite/"}"/Packages{,.gz}; do
    printf ' %s %d %s\n' "$(sha256sum "$file" | cut -d' ' -f1)" "$(stat -c %s "$file")" "$file"
  done
} >Release
cd "$folder"
printf '%s: %d packages, %s. On the machine without a network:\n' "$folder" \
  "$(find pool -name '*.deb' | wc -l)" "$(du -sh pool | cut -f1)"
printf '  echo "deb [trusted=yes] file:%s %s main" > /etc/apt/sources.list\n' "$folder" "$suite"
