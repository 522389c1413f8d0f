// LockOwner says which process holds the lock of a checkpoint folder (io/checkpoint/run_lock.h), so
// that another one can find out whether it still lives.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace trireme {

struct LockOwner {
  std::string host;
  std::int64_t pid = 0;
  std::string boot_id;
  std::int64_t start_time = 0;  // of the process, in clock ticks since boot
  std::string nonce;
  std::string job_id;              // Slurm's job id; empty outside a job
  std::int64_t restart_count = 0;  // of that job
  std::string launch;              // id of the `trireme launch`; empty outside one
  std::int64_t attempt = 0;        // number of the attempt within the launch (TRIREME_GENERATION)
  std::string since;               // UTC time at which the lock was taken, only shown to people

  // Describes this process, its Slurm job and its launch (from the environment), with a new nonce.
  // Throws ConfigError that names the variable if one cannot stand in a lock.
  static LockOwner this_process();
  // Returns "host n3, process 4711, Slurm job 99 (since ...)".
  std::string describe() const;
};

std::string to_text(const LockOwner& owner);
// Returns nothing if the text is damaged.
std::optional<LockOwner> parse_lock(std::string_view text);

}  // namespace trireme
