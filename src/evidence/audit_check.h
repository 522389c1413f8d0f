// Checks the chain of an audit log and the signatures of its heads. Pure functions, except for
// check_audit_log().
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/evidence/audit_line.h"

namespace trireme {

struct AuditFault {
  std::int64_t line = 0;  // from 1
  std::string what;       // "was changed after line 5 was written"
};

struct AuditCheck {
  std::int64_t lines = 0;
  AuditHead head;                 // of the last line
  std::int64_t signed_lines = 0;  // lines up to the last head that a trusted key has signed
  std::string signer;             // of that head
  // Events that no head of a trusted key follows at once: 0, or the line of the first of them. A
  // later head does not vouch for them, because its writer signed what it found.
  std::int64_t unsigned_event = 0;
  std::vector<AuditFault> faults;  // the first 20
  std::int64_t faults_not_listed = 0;
  std::vector<std::string> notes;  // such as a clock that went back
};

struct AuditDemands {
  std::vector<TrustedKey> trusted = {};  // if empty, signatures are not checked
  std::vector<AuditHead> heads = {};     // known from elsewhere: lines that the log must contain
  int threads = 1;                       // that check signatures
  std::size_t batch = 4096;              // lines that wait until their signatures are checked
  // Is given each event with the number of its line, from 1, before it is known whether the log is
  // whole and signed.
  std::function<void(std::int64_t, const nlohmann::json&)> event = [](std::int64_t,
                                                                      const nlohmann::json&) {};
};

AuditCheck check_audit_text(std::string_view text, const AuditDemands& demands);
// Reads line by line. Waits for a writer that is just appending; what is appended later is not
// read.
AuditCheck check_audit_log(const std::filesystem::path& path, const AuditDemands& demands);
// Checks only the last lines, of about 1 MiB in all: whether they continue one another, and their
// signatures. They are counted from the first of them.
AuditCheck check_audit_end(const std::filesystem::path& path, const AuditDemands& demands);

// Returns which demand of `trusted` the log does not meet, or "".
std::string lack_of_trust(const AuditCheck& check, const AuditDemands& demands);

}  // namespace trireme
