// Defines the errors of Trireme: one root, and one subclass for each action that an operator has to
// take. The class determines the exit code (docs/exit-codes.md). Messages say what happened, where
// (file, byte, rank, host, step) and what to do about it.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include <fmt/core.h>

namespace trireme {

// The code that a process returns to its job script.
enum class ExitCode : int {
  ok = 0,
  usage = 2,
  diverged = 3,
  below_threshold = 4,
  bad_data = 65,
  not_found = 66,
  io = 74,
  requeue = 75,
  device = 76,
  refused = 77,
  hang = 85,
  no_progress = 93,
};

class Error : public std::runtime_error {
 public:
  ExitCode exit_code() const { return code_; }
  // A short fixed word for programs: "config", "data", "io", ...
  std::string_view kind() const { return kind_; }

 protected:
  Error(ExitCode code, std::string_view kind, const std::string& what)
      : std::runtime_error(what), code_(code), kind_(kind) {}

 private:
  ExitCode code_;
  std::string_view kind_;
};

// The command line or configuration is wrong; it must be corrected before the next start.
struct ConfigError : Error {
  explicit ConfigError(const std::string& what) : Error(ExitCode::usage, "config", what) {}
};
// The loss or gradients were not finite for longer than the policy allows.
struct DivergenceError : Error {
  explicit DivergenceError(const std::string& what) : Error(ExitCode::diverged, "numerics", what) {}
};
// A dataset or checkpoint is damaged, foreign or of a version this program can't read.
struct DataError : Error {
  explicit DataError(const std::string& what) : Error(ExitCode::bad_data, "data", what) {}
};
struct NotFound : Error {
  explicit NotFound(const std::string& what) : Error(ExitCode::not_found, "not_found", what) {}
};
// The file system failed: a full disk, a lost mount, a failing device.
struct IoError : Error {
  explicit IoError(const std::string& what) : Error(ExitCode::io, "io", what) {}
};
struct DeviceError : Error {
  explicit DeviceError(const std::string& what) : DeviceError("device", what) {}

 protected:
  DeviceError(std::string_view kind, const std::string& what)
      : Error(ExitCode::device, kind, what) {}
};
// The system, the device or a limit of this process refuses the memory or the threads that the run
// needs. A launch does not blame a node for it.
struct ResourceError : DeviceError {
  explicit ResourceError(const std::string& what) : DeviceError("memory", what) {}
};
// Permission was denied, or a policy of the site or of this program forbids it, such as one run per
// folder.
struct PolicyError : Error {
  explicit PolicyError(const std::string& what) : Error(ExitCode::refused, "policy", what) {}
};
// A peer died or the network failed.
struct CommError : Error {
  explicit CommError(const std::string& what) : Error(ExitCode::hang, "communication", what) {}
};
// There was no progress before a deadline.
struct Hang : Error {
  explicit Hang(const std::string& what) : Error(ExitCode::hang, "hang", what) {}
};
// An invariant of this program is broken, which is a defect of the program and not of its input.
struct InternalError : std::logic_error {
  using std::logic_error::logic_error;
};

}  // namespace trireme
