#!/usr/bin/env bash
# Prints the time of the commit that the sources are of, in seconds since 1970, or that of
# SOURCE_DATE_EPOCH. Packages give it to their files, so that they do not depend on when they were
# made (https://reproducible-builds.org/specs/source-date-epoch/).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

time=${SOURCE_DATE_EPOCH:-}
if [[ -z $time && -e .git ]]; then
  time=$(git -c safe.directory='*' log -1 --format=%ct)
elif [[ -z $time ]]; then
  time=$(sed -n 2p src/app/command/commit.txt) # git archive has written it there
fi
if [[ ! $time =~ ^[0-9]+$ ]]; then
  echo "source_date: neither a clone nor an archive of git: set SOURCE_DATE_EPOCH" >&2
  exit 2
fi
echo "$time"
