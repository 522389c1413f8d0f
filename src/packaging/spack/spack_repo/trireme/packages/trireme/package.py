"""Builds Trireme with Spack 1.0 or newer. The recipe knows no release: a site adds the version and
the digest that stand in the signed list SHA256SUMS of a release, or builds a clone with
`spack develop` (docs/install.md)."""

import os

from spack_repo.builtin.build_systems.cmake import CMakePackage, generator

from spack.package import *


class Trireme(CMakePackage):
    """Trains transformer models on clusters: one C++ program over MPI and HDF5 that gives the same
    bits on any number of ranks and survives killed ranks and lost nodes."""

    # The folder of a release, or a mirror of it; nothing is fetched from elsewhere.
    url = "file:///opt/trireme-release/trireme-0.1.0.tar.gz"
    git = "file:///opt/trireme.git"

    license("Apache-2.0")

    version("main", branch="main")
    # version("0.1.0", sha256="<the digest of trireme-0.1.0.tar.gz>")

    variant("cuda", default=False, description="Compute on NVIDIA GPUs, too")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("binutils", type="build")
    # The tests and the benchmark of kernels are configured, and not built.
    depends_on("googletest@1.12: +gmock", type="build")
    depends_on("benchmark@1.7:", type="build")
    depends_on("python@3.9:", type="build")

    depends_on("mpi@3:")
    depends_on("ucx@1.13:")
    depends_on("hdf5@1.10:~mpi")
    depends_on("zlib-api")
    depends_on("zstd@1.4:")
    depends_on("simdjson@3:")
    depends_on("sqlite@3.31:")
    depends_on("onednn@2.6:")
    depends_on("hwloc@2.9:")
    depends_on("fmt@9:")
    depends_on("spdlog@1.10: +shared")
    depends_on("cli11@2.1:")
    depends_on("yaml-cpp@0.7:")
    depends_on("nlohmann-json@3.11:")
    depends_on("xxhash@0.8:")
    depends_on("openssl@3:")
    depends_on("p11-kit@0.24:")
    depends_on("cuda@12:", when="+cuda")
    depends_on("nccl@2.18:", when="+cuda")

    requires("target=x86_64:", msg="the kernels are written for x86-64")
    conflicts("%gcc@:11", msg="the sources are C++20 and need GCC 12 or newer")

    generator("ninja")
    build_targets = ["trireme"]

    def cmake_args(self):
        return [
            self.define("CMAKE_BUILD_TYPE", "RelWithDebInfo"),
            self.define("CMAKE_UNITY_BUILD", True),
            self.define("TRIREME_CUDA", "ON" if self.spec.satisfies("+cuda") else "OFF"),
        ]

    def install(self, spec, prefix):
        # Not the target "install", which would build everything first.
        for component in ("program", "debug"):
            cmake("--install", self.build_directory, "--component", component)

    @run_after("install")
    def check_program(self):
        Executable(os.path.join(self.prefix.bin, "trireme"))("--version")
