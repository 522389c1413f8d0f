#!/usr/bin/env bash
# Makes FOLDER/trireme-...-bundle.tar.gz: the installed program with all libraries that it needs but
# the C library and the drivers of the node, namely Open MPI, PMIx and UCX with their plugins, HDF5,
# oneDNN and the rest (docs/install.md, "A bundle"). mpi/session/bundled_mpi.cc knows where things
# are in it.
#
# usage: bundle.sh BUILD-FOLDER FOLDER [LIBRARY-TO-LEAVE-OUT ...]
set -euo pipefail

here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
build=$(realpath "$1")
folder=$(realpath "$2")
name=trireme-$("$build/trireme" --version | awk '{print $2; exit}')-$(uname -sm | tr ' ' -)-bundle
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
SOURCE_DATE_EPOCH=$("$here/source_date.sh")
export SOURCE_DATE_EPOCH
umask 022
readonly here build folder stage name root=$stage/$name tarball=$folder/$name.tar.gz
readonly triplet=lib/x86_64-linux-gnu
readonly system=/usr/$triplet
shift 2
components=(program)
if [[ -e $build/late_libraries ]]; then  # the preset `cuda` writes this list
  components+=(gpu_suite)
fi
# With DESTDIR, `uninstall` does not learn of these files.
for component in "${components[@]}"; do
  DESTDIR=$stage cmake --install "$build" --component "$component" --prefix "/$name" >/dev/null
done

# These belong to the node: the C library with GCC's support library, which it needs itself, and
# what goes with the drivers of its kernel.
readonly node='^(ld-linux.*|lib(c|m|dl|rt|pthread|resolv|util|anl|nsl|mvec|gcc_s)|libnss_.*)\.so'
readonly fabric='^lib(ibverbs|rdmacm|efa|infinipath|psm_infinipath|psm2|fabric)\.so'
readonly driver='^lib(cuda|nvidia-.*)\.so'
left_out="$node|$fabric|$driver"
for library in "$@"; do
  left_out+="|^$library"
done
readonly left_out

# Copies the libraries that the given files need, and those that they need in turn.
copy_libraries() { # FILE ...
  local soname path
  ldd "$@" 2>/dev/null | awk '/=> \// {print $1, $3}' | sort -u | while read -r soname path; do
    if [[ ! $soname =~ $left_out && ! -e $root/$triplet/$soname ]]; then
      cp -L "$path" "$root/$triplet/$soname"
    fi
  done
}

# Lets a file find the bundle's libraries from where it lies.
point_to_libraries() { # FILE ...
  local file way
  for file in "$@"; do
    way=$(realpath --relative-to "$(dirname "$file")" "$root/$triplet")
    patchelf --set-rpath "\$ORIGIN/$way" "$file"
  done
}

copy_plugins() { # FOLDER PATTERN
  mkdir -p "$root/$triplet/$1"
  # Each only once and under the name by which it is loaded.
  find "$system/$1" -maxdepth 1 -name "$2" -exec cp -L -t "$root/$triplet/$1" {} +
}

mkdir -p "$root/$triplet" "$root/libexec" "$root/etc" "$root/share"
copy_plugins openmpi/lib/openmpi3 'mca_*.so'
copy_plugins pmix2/lib/pmix 'pmix_mca_*.so'
copy_plugins ucx 'libuc*.so.0'
cp -rL "$system/pmix2/share" "$root/$triplet/pmix2/share"
cp -rL /usr/share/openmpi "$root/share/openmpi"
cp -rL /etc/openmpi "$root/etc/openmpi"
cp -L "$(readlink -f "$(command -v mpirun)")" "$root/libexec/mpirun"
cp -L "$(readlink -f "$(command -v orted)")" "$root/bin/orted"

# mpirun, too, needs to know where its plugins lie.
cat >"$root/bin/mpirun" <<'TEXT'
#!/bin/sh
# Starts the mpirun of this bundle with its own plugins.
root=$(dirname "$(dirname "$(readlink -f "$0")")")
libraries=$root/lib/x86_64-linux-gnu
export OPAL_PREFIX="$root" OPAL_SYSCONFDIR="$root/etc/openmpi"
export PMIX_PREFIX="$libraries/pmix2" PMIX_LIBDIR="$libraries/pmix2/lib"
export PMIX_DATAROOTDIR="$libraries/pmix2/share" UCX_MODULE_DIR="$libraries/ucx"
# Without a way to reach other nodes, Open MPI starts ranks on this one only if it is told so.
if ! command -v ssh >/dev/null && ! command -v rsh >/dev/null && [ -z "${SLURM_JOB_ID:-}" ]; then
  export OMPI_MCA_plm="${OMPI_MCA_plm:-isolated}"
fi
exec "$root/libexec/mpirun" "$@"
TEXT
chmod 755 "$root/bin/mpirun"

# The program loads these when it computes on a GPU, so that it does not name them as needed.
if [[ -e $build/late_libraries ]]; then
  while read -r path; do
    if [[ ! ${path##*/} =~ $left_out ]]; then
      cp -L "$path" "$root/$triplet/"
    fi
  done <"$build/late_libraries"
fi

programs=("$root/bin/trireme" "$root/bin/orted" "$root/libexec/mpirun")
for program in kernels_cuda_test golden_cuda_test kernels_benchmark; do
  if [[ -e $root/libexec/$program ]]; then
    programs+=("$root/libexec/$program")
    objcopy --strip-all "$root/libexec/$program"
  fi
done
mapfile -t plugins < <(find "$root/$triplet" -type f -name '*.so*')
copy_libraries "${programs[@]}" "${plugins[@]}"
mapfile -t libraries < <(find "$root/$triplet" -type f -name '*.so*')
point_to_libraries "${programs[@]}" "${libraries[@]}"

# The bundle has to start on systems whose C library is older than this one, down to glibc 2.34,
# that of Red Hat Enterprise Linux 9. It adds the few newer functions that Debian's libraries call.
readonly additions=$root/$triplet/libtrireme_glibc.so
"${CC:-cc}" -O2 -Wall -Wextra -Werror -shared -fPIC -Wl,-soname,libtrireme_glibc.so \
  -o "$additions" "$here/glibc_additions.c"
strip "$additions"
mapfile -t changed < <(
  /usr/bin/python3 "$here/drop_versions.py" 2.34 "$additions" "${programs[@]}" "${libraries[@]}")
for file in "${changed[@]:1}"; do
  patchelf --add-needed libtrireme_glibc.so "$file"
done
printf 'Needs the C library GLIBC %s or newer, on %s.\n' "${changed[0]}" "$(uname -m)" \
  >"$root/share/trireme/bundle"
# The bills of materials name the files as the tarball does.
for format in cyclonedx spdx; do
  "$root/bin/trireme" --version --sbom "$format" | sed "s|$(realpath "$stage")/||" \
    >"$root/share/trireme/sbom.$format.json"
done
# The same files give the same tarball.
tar -C "$stage" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
  --mode=u=rwX,go=rX -cf - "$name" | gzip -9n >"$tarball"
printf '%s: %s. %s' "$tarball" "$(du -h "$tarball" | cut -f1)" "$(cat "$root/share/trireme/bundle")"
echo
