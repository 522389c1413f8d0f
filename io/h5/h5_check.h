// Private to io/h5: the one door to libhdf5's return codes. A negative code becomes an exception
// that carries the words of HDF5's error stack: IoError where the operating system said no (errno),
// else DataError. The stack belongs to the calling thread.
#pragma once

#include <filesystem>
#include <string_view>

#include <hdf5.h>

namespace trireme {

// Call before any other function of libhdf5. Turns off its printing of errors (for the calling
// thread) and what lets a file reach beyond itself (for the process): filter plugins, which would
// load code from HDF5_PLUGIN_PATH, and external links.
void h5_prepare();

[[noreturn]] void h5_throw(std::string_view operation, const std::filesystem::path& path);

// Works for hid_t, herr_t, htri_t and hssize_t alike: all report failure by a negative value.
template <class Code>
Code h5_check(Code code, std::string_view operation, const std::filesystem::path& path) {
  if (code < 0) {
    h5_throw(operation, path);
  }
  return code;
}

}  // namespace trireme
