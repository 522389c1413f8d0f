// Checks the return codes of libhdf5; private to io/h5. A negative code becomes an exception with
// the text of the calling thread's HDF5 error stack: PolicyError if errno denies permission,
// IoError for any other errno, and DataError if there is no errno.
#pragma once

#include <filesystem>
#include <string_view>

#include <hdf5.h>

namespace trireme {

// Must be called before any other function of libhdf5. Turns off HDF5's printing of errors for the
// calling thread. For the process, turns off what lets a file reach outside itself: external links,
// and filter plugins, which would be loaded from HDF5_PLUGIN_PATH.
void h5_prepare();

[[noreturn]] void h5_throw(std::string_view operation, const std::filesystem::path& path);

// Works for hid_t, herr_t, htri_t and hssize_t, which all report failure by a negative value.
template <class Code>
Code h5_check(Code code, std::string_view operation, const std::filesystem::path& path) {
  if (code < 0) {
    h5_throw(operation, path);
  }
  return code;
}

}  // namespace trireme
