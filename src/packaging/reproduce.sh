#!/usr/bin/env bash
# Builds the commit twice without a compiler cache, in two new folders below FOLDER and with another
# language, time zone and umask, and compares the program, the Debian packages and the bundle bit
# for bit (docs/install.md, "The same bytes again"). Ends with 1 if something differs, and names it.
#
# usage: reproduce.sh FOLDER
set -euo pipefail

if (($# != 1)); then
  echo "usage: ./dev reproduce DIR (a new folder, for 3 GB)" >&2
  exit 2
fi
source=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")
if [[ -e $1 && -n $(ls -A "$1") ]]; then
  echo "reproduce: $1 is not empty: name a new folder" >&2
  exit 77
fi
mkdir -p "$1"
folder=$(realpath "$1")
readonly source folder first="$folder/first" second="$folder/a second folder/with a longer name"
readonly git=(git -c safe.directory='*')
if [[ -n $("${git[@]}" -C "$source" status --porcelain) ]]; then
  echo "reproduce: changes that are not committed are left out" >&2
fi

# Builds in a clone, and puts what is delivered into its folder `delivered`.
make_all() { # REPOSITORY CLONE
  "${git[@]}" clone -q "$1" "$2"
  cd "$2"
  mkdir delivered
  cmake --preset release >delivered.log
  cmake --build build/release --target trireme >>delivered.log
  cp build/release/trireme delivered/
  if command -v dh >/dev/null; then
    src/packaging/deb.sh release delivered >>delivered.log
  fi
  src/packaging/bundle.sh build/release delivered >>delivered.log
}

unset SOURCE_DATE_EPOCH CFLAGS CXXFLAGS LDFLAGS
export CCACHE_DISABLE=1
echo "reproduce: building in $first" >&2
(umask 022 && TZ=UTC LC_ALL=C make_all "$source" "$first")
echo "reproduce: building in $second" >&2
# A clone of the clone has the same commit, also if the sources have a new one meanwhile.
(umask 027 && TZ=Asia/Dubai LC_ALL=C.UTF-8 make_all "$first" "$second")

cd "$first"
status=0
for file in delivered/*; do
  if cmp -s "$file" "$second/$file"; then
    printf 'same     %s  %s\n' "$(sha256sum <"$file" | cut -d' ' -f1)" "${file##*/}"
  else
    printf 'DIFFERS  %s\n' "${file##*/}"
    status=1
  fi
done
if ((status)); then
  find build/release -name '*.o' | sort | while read -r object; do
    cmp -s "$object" "$second/$object" || printf 'DIFFERS  %s\n' "$object"
  done
fi
exit "$status"
