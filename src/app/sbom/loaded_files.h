// Asks the dynamic linker which shared objects this process has loaded.
#pragma once

#include <string>
#include <vector>

namespace trireme {

struct LoadedFile {
  std::string path;    // absolute, without symbolic links
  std::string soname;  // empty if the object has none
};

// Returns the shared objects of this process, sorted by path, without the program itself and the
// kernel's vdso, which is no file. What is loaded later (plug-ins of MPI, libraries of a GPU) is
// not among them.
std::vector<LoadedFile> loaded_files();

}  // namespace trireme
