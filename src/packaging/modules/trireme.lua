-- A modulefile of Lmod for a bundle of Trireme. Install it as trireme/VERSION.lua below a folder of
-- $MODULEPATH. If the bundle was not unpacked in /opt, change `root` (docs/install.md).
local version = myModuleVersion()
local root = "/opt/trireme-" .. version .. "-Linux-x86_64-bundle"

help([[
Trireme trains transformer models on clusters. Begin with `man trireme`, `trireme doctor RUN.yaml`
and the documents in ]] .. root .. "/share/doc/trireme.")
whatis("Name: trireme")
whatis("Version: " .. version)
whatis("Description: trains transformer models on clusters over MPI and HDF5")

if (mode() == "load" and not isFile(root .. "/bin/trireme")) then
  LmodError("trireme/" .. version .. ": there is no bundle of Trireme in " .. root)
end
-- The mpirun of the bundle starts its ranks; that of another MPI cannot.
conflict("openmpi", "mpich", "impi")
-- man finds the manual pages beside a folder of $PATH.
prepend_path("PATH", root .. "/bin")
