// The errors of Trireme: one root, and one subclass for each thing an operator has to do next.
// The exit code belongs to the class (docs/exit-codes.md); main() is the only place that catches.
// Messages say what happened, where (file, byte, rank, host, step) and what to do about it.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include <fmt/core.h>

namespace trireme {

// What a process reports to its job script.
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
  // A short stable word for machines: "config", "data", "io", ...
  std::string_view kind() const { return kind_; }

 protected:
  Error(ExitCode code, std::string_view kind, const std::string& what)
      : std::runtime_error(what), code_(code), kind_(kind) {}

 private:
  ExitCode code_;
  std::string_view kind_;
};

// Usage or configuration: fix the command and start again.
struct ConfigError : Error {
  explicit ConfigError(const std::string& what) : Error(ExitCode::usage, "config", what) {}
};
// Loss or gradients left the numbers for longer than the policy allows.
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
// The file system said no: a full disk, a lost mount, a failing device.
struct IoError : Error {
  explicit IoError(const std::string& what) : Error(ExitCode::io, "io", what) {}
};
struct DeviceError : Error {
  explicit DeviceError(const std::string& what) : Error(ExitCode::device, "device", what) {}
};
// Permission, or a policy of the site or of this program (a second run on one directory, say).
struct PolicyError : Error {
  explicit PolicyError(const std::string& what) : Error(ExitCode::refused, "policy", what) {}
};
// A peer is gone or the fabric failed.
struct CommError : Error {
  explicit CommError(const std::string& what) : Error(ExitCode::hang, "communication", what) {}
};
// No progress before a deadline.
struct Hang : Error {
  explicit Hang(const std::string& what) : Error(ExitCode::hang, "hang", what) {}
};
// An invariant of this program is broken: a defect, never the user's fault.
struct InternalError : std::logic_error {
  using std::logic_error::logic_error;
};

}  // namespace trireme
