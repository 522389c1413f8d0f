// CrashGuard turns a crash of libhdf5 into an error. libhdf5 1.10 trusts the addresses in a file
// that it opens, and some damaged files make it read outside its memory. While a guard lives, a
// crash of its thread ends the process with exit code 65 and a message that names the file. One
// guard per thread at a time.
#pragma once

#include <filesystem>
#include <string>

namespace trireme {

class CrashGuard {
 public:
  explicit CrashGuard(const std::filesystem::path& file);
  ~CrashGuard();
  CrashGuard(const CrashGuard&) = delete;
  CrashGuard& operator=(const CrashGuard&) = delete;

 private:
  const std::string message_;
};

}  // namespace trireme
