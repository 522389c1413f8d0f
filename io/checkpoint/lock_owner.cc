#include "io/checkpoint/lock_owner.h"

#include <charconv>
#include <cstdlib>
#include <random>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "io/checkpoint/process.h"
#include "src/base/clock.h"
#include "src/base/digest.h"
#include "src/base/json_fields.h"
#include "src/base/log.h"
#include "src/base/printable.h"

namespace trireme {
namespace {

using nlohmann::json;

std::string environment(const char* name) {
  const char* value = std::getenv(name);  // no setenv here
  return value == nullptr ? "" : value;
}

// Throws ConfigError unless parse_lock() can read the number back. A variable that is not set or
// empty counts as 0.
std::int64_t number_in(const char* variable) {
  const std::string text = environment(variable);
  if (text.empty()) {
    return 0;
  }
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || value < 0 || value > kMostCount) {
    throw ConfigError(fmt::format(
        "{} is '{}': expected a whole number from 0 to 2^60; unset it unless a launcher sets it",
        variable, printable(text)));
  }
  return value;
}

// Throws ConfigError unless the text can stand in JSON and in messages as it is.
std::string word_in(const char* variable) {
  std::string text = environment(variable);
  if (const std::string shown = printable(text); shown != text) {
    throw ConfigError(
        fmt::format("{} is '{}': expected text without control characters, in UTF-8; unset it "
                    "unless a launcher sets it",
                    variable, shown));
  }
  return text;
}

std::string fresh_nonce() {
  std::random_device device;
  return hex64((std::uint64_t{device()} << 32) | device());
}

}  // namespace

LockOwner LockOwner::this_process() {
  LockOwner owner;
  owner.host = host_name();
  owner.pid = ::getpid();
  owner.boot_id = current_boot_id();
  owner.start_time = process_start_time(owner.pid).value_or(0);
  owner.nonce = fresh_nonce();
  owner.job_id = word_in("SLURM_JOB_ID");
  owner.restart_count = number_in("SLURM_RESTART_COUNT");
  owner.launch = word_in("TRIREME_LAUNCH_ID");
  owner.attempt = number_in("TRIREME_GENERATION");
  owner.since = utc_now();
  return owner;
}

std::string LockOwner::describe() const {
  return fmt::format("host {}, process {}{} (since {})", host, pid,
                     job_id.empty() ? "" : ", Slurm job " + job_id, since);
}

std::string to_text(const LockOwner& owner) {
  const json object = {{"host", owner.host},
                       {"pid", owner.pid},
                       {"boot_id", owner.boot_id},
                       {"start_time", owner.start_time},
                       {"nonce", owner.nonce},
                       {"job_id", owner.job_id},
                       {"restart_count", owner.restart_count},
                       {"launch", owner.launch},
                       {"attempt", owner.attempt},
                       {"since", owner.since}};
  const std::string line = object.dump() + "\n";
  return line + hex64(xxh3(line.data(), static_cast<std::int64_t>(line.size()))) + "\n";
}

std::optional<LockOwner> parse_lock(std::string_view text) {
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view line = text.substr(0, end + 1);
  const std::string digest = hex64(xxh3(line.data(), static_cast<std::int64_t>(line.size())));
  if (text.substr(end + 1) != digest + "\n") {
    return std::nullopt;
  }
  try {
    const json object = parse_json(line);
    LockOwner owner;
    owner.host = text_field(object, "host");
    owner.pid = count_field(object, "pid");
    owner.boot_id = text_field(object, "boot_id");
    owner.start_time = count_field(object, "start_time");
    owner.nonce = text_field(object, "nonce");
    owner.job_id = text_field(object, "job_id");
    owner.restart_count = count_field(object, "restart_count");
    if (object.contains("launch")) {  // missing in locks of version 0.1
      owner.launch = text_field(object, "launch");
      owner.attempt = count_field(object, "attempt");
    }
    owner.since = text_field(object, "since");
    return owner;
  } catch (const DataError&) {
    return std::nullopt;
  }
}

}  // namespace trireme
