// LateLibrary is a shared library of CUDA that is loaded when it is first needed: a program starts,
// and computes on CPUs, on nodes without it. One per process and library, never unloaded; callable
// from any thread.
#pragma once

#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace trireme::cuda {

class LateLibrary {
 public:
  // paths: where to look, in this order. A name without a folder stands for the folders of the
  // dynamic linker.
  explicit LateLibrary(std::vector<std::string> paths) : paths_(std::move(paths)) {}

  // Returns why the library cannot be loaded, in the words of the dynamic linker about each path;
  // empty if it is loaded.
  std::string error();
  // Throws DeviceError if the library cannot be loaded or lacks the function.
  void* function(const char* name);

 private:
  void load();

  std::vector<std::string> paths_;
  std::once_flag once_;
  void* handle_ = nullptr;
  std::string error_;
};

}  // namespace trireme::cuda
