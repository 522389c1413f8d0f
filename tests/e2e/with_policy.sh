#!/bin/sh
# with_policy.sh ORIGINAL FILES COMMAND...: runs the command in the mount namespace of this shell
# with the contents of the folder FILES as /etc/trireme, whether or not this machine has one. The
# rest of /etc stays as it is, seen through links to ORIGINAL, an empty folder. Exits with 99 if
# nothing can be mounted.
set -e
original=$1
files=$2
shift 2
mount --bind /etc "$original" || exit 99
mount -t tmpfs -o mode=755 tmpfs /etc || exit 99
for entry in "$original"/* "$original"/.[!.]*; do
  case ${entry##*/} in
    trireme | '*' | '.[!.]*') ;;
    *) ln -s "$entry" /etc/ ;;
  esac
done
cp -a "$files" /etc/trireme
exec "$@"
