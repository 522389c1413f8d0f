#%Module1.0
# A modulefile of Environment Modules (and of Lmod) for a bundle of Trireme. Install it as
# trireme/VERSION below a folder of $MODULEPATH. If the bundle was not unpacked in /opt, change
# `root` (docs/install.md).
set version [file tail [module-info name]]
set root /opt/trireme-$version-Linux-x86_64-bundle

proc ModulesHelp {} {
  global root
  puts stderr "Trireme trains transformer models on clusters. Begin with `man trireme`,"
  puts stderr "`trireme doctor RUN.yaml` and the documents in $root/share/doc/trireme."
}
module-whatis "trireme $version: trains transformer models on clusters over MPI and HDF5"

if {[module-info mode load] && ![file isfile $root/bin/trireme]} {
  puts stderr "trireme/$version: there is no bundle of Trireme in $root"
  break
}
# The mpirun of the bundle starts its ranks; that of another MPI cannot.
conflict openmpi mpich impi
# man finds the manual pages beside a folder of $PATH.
prepend-path PATH $root/bin
