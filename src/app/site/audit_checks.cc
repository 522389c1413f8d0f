#include "src/app/site/audit_checks.h"

#include <ctime>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/json_fields.h"
#include "src/base/printable.h"
#include "src/evidence/audit_check.h"
#include "src/evidence/audit_copy.h"
#include "src/evidence/audit_log.h"

namespace trireme {
namespace {

Finding finding_of(const char* key, const Error& error, const std::string& host,
                   const std::string& remedy) {
  Finding finding = error_of(error, host);
  finding.what = fmt::format("{}: {}", key, finding.what);
  finding.remedy = remedy;
  return finding;
}

std::string remedy_for_key(const Error& error, const std::string& path) {
  if (names_token(path)) {
    return "";  // the message says what to do
  }
  switch (error.exit_code()) {
    case ExitCode::not_found:
      return fmt::format("make a key with `trireme audit keygen --out {}`", path);
    case ExitCode::refused:
      return fmt::format("let the user of the run own {}, and nobody else read it: chmod 600",
                         path);
    default:
      return "";  // the message says what to do
  }
}

std::string remedy_for_log(const Error& error, const std::string& path) {
  switch (error.exit_code()) {
    case ExitCode::not_found:
      return fmt::format("create the folder of {}, or name another file in audit.log", path);
    case ExitCode::refused:
      return fmt::format("let the user of the run append to {} and read it", path);
    case ExitCode::io:
      return "use a file system with room and with locks";
    default:
      return "";
  }
}

constexpr std::int64_t kMostSkewSeconds = 60;  // between hosts whose clocks are synchronized

// Warns if the last lines of the log do not continue one another, or if the last event is of a time
// that this host's clock has not reached.
std::vector<Finding> check_end(const std::string& log, AuditDemands demands,
                               const std::string& host) {
  std::string last;
  demands.event = [&](std::int64_t, const nlohmann::json& event) {
    last = text_field(event, "time");
  };
  std::vector<Finding> found;
  if (!check_audit_end(log, demands).faults.empty()) {
    found.push_back(warning_of(
        fmt::format("audit.log: the last lines of {} were changed after they were written", log),
        host,
        fmt::format("examine it with `trireme audit verify {}`, keep it, and name a new file in "
                    "audit.log",
                    log)));
  } else if (last > utc_text(std::time(nullptr) + kMostSkewSeconds)) {
    found.push_back(warning_of(
        fmt::format("audit.log: the last event in {} is of {}, but the clock of this host says {}",
                    log, printable(last), utc_now()),
        host,
        "synchronize the clocks: the times of events and signatures, and the ends of retentions, "
        "depend on them"));
  }
  return found;
}

}  // namespace

std::vector<Finding> check_audit(const AuditConfig& config, const std::string& host) {
  std::vector<Finding> found;
  AuditDemands demands;
  if (!config.key.empty()) {
    try {
      demands.trusted.push_back({SigningKey::load(config.key).public_key(), "audit.key"});
    } catch (const Error& error) {
      found.push_back(
          finding_of("audit.key", error, host, remedy_for_key(error, config.key.string())));
    }
  }
  if (config.log.empty()) {
    return found;
  }
  const std::string log = config.log.string();
  if (config.log.is_relative()) {
    found.push_back(warning_of(
        fmt::format("audit.log: {} is a relative path, so that a start in another folder writes "
                    "to another log",
                    printable(log)),
        host, "write a path that begins with /"));
  }
  for (const std::string& copy : config.copies) {
    try {
      AuditCopy(copy).check();
    } catch (const Error& error) {
      found.push_back(error_of(error, host));  // the message names the key and says what to do
    }
  }
  try {
    AuditLog(config.log).check();
    std::error_code unknown;
    if (std::filesystem::exists(config.log, unknown)) {
      append(found, check_end(log, demands, host));
    }
  } catch (const Error& error) {
    found.push_back(finding_of("audit.log", error, host, remedy_for_log(error, log)));
  }
  return found;
}

}  // namespace trireme
