#include "src/device/cuda/late_library.h"

#include <dlfcn.h>

#include "src/base/error.h"
#include "src/base/log.h"

namespace trireme::cuda {
namespace {

std::string linker_error(const std::string& otherwise) {
  const char* const error = ::dlerror();
  return error == nullptr ? otherwise : error;
}

}  // namespace

void LateLibrary::load() {
  for (const std::string& path : paths_) {
    handle_ = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ != nullptr) {
      error_.clear();
      return;
    }
    error_ += (error_.empty() ? "" : "; ") + linker_error(path + " cannot be loaded");
  }
}

std::string LateLibrary::error() {
  std::call_once(once_, [this] { load(); });
  return error_;
}

void* LateLibrary::function(const char* name) {
  if (const std::string why = error(); !why.empty()) {
    throw DeviceError(fmt::format("{} cannot be called on {}: {}", name, host_name(), why));
  }
  void* const found = ::dlsym(handle_, name);
  if (found == nullptr) {
    throw DeviceError(fmt::format(
        "{} cannot be called on {}: the library is older than this program, which was built with "
        "one that has it ({})",
        name, host_name(), linker_error(paths_.front())));
  }
  return found;
}

}  // namespace trireme::cuda
