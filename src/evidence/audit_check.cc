#include "src/evidence/audit_check.h"

#include <cerrno>
#include <chrono>
#include <thread>
#include <unordered_map>

#include <nlohmann/json.hpp>
#include <sys/file.h>

#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/json_fields.h"
#include "src/base/printable.h"
#include "src/base/stopwatch.h"

namespace trireme {
namespace {

using nlohmann::json;

constexpr std::size_t kMostFindings = 20;  // a log with more of them is not worth listing
constexpr double kMostWaitSeconds = 10;
constexpr std::int64_t kMostLogBytes = std::int64_t{1} << 32;

class Checker {
 public:
  explicit Checker(const AuditDemands& demands) : demands_(demands) {}

  AuditCheck check(std::string_view text) {
    while (!text.empty()) {
      const std::size_t end = text.find('\n');
      ++result_.lines;
      next(text.substr(0, end));
      if (end == std::string_view::npos) {
        fault(result_.lines, "is incomplete: the log was cut within it, or its writer crashed");
        break;
      }
      text.remove_prefix(end + 1);
    }
    settle_suspicion();
    note_unsigned();
    compare_heads();
    return std::move(result_);
  }

 private:
  void fault(std::int64_t line, const std::string& what) {
    if (result_.faults.size() < kMostFindings) {
      result_.faults.push_back({line, what});
    } else {
      ++result_.faults_not_listed;
    }
  }

  void next(std::string_view line) {
    const AuditHead last = result_.head;
    result_.head = head_after(last, line);
    try {
      if (std::ssize(line) > kMostAuditLineBytes) {
        throw DataError(fmt::format("it has {} bytes", line.size()));
      }
      const json object = parse_json(line);
      result_.head.seq = count_field(object, "seq");
      const std::string& event = text_field(object, "event");
      check_chain(last, text_field(object, "prev"));
      if (event == kHeadEvent) {
        check_head(last, object, line);
      } else {
        note_unsigned();
        event_ = result_.lines;
        check_time(object);
      }
    } catch (const DataError& error) {
      fault(result_.lines, fmt::format("is no line of an audit log: {}", error.what()));
    }
    line_of_.emplace(result_.head.sha256, result_.lines);
    known_.emplace(result_.head.seq, result_.head.sha256);
  }

  void check_chain(const AuditHead& last, const std::string& prev) {
    const std::int64_t line = result_.lines;
    const std::int64_t seq = result_.head.seq;
    if (prev == last.sha256) {
      if (suspect_ == line - 1 && suspect_ != 0) {  // the line before is as it was written
        fault(line - 2, fmt::format("was changed after line {} was written", line - 1));
        suspect_ = 0;
      }
      if (seq != last.seq + 1) {
        fault(line, fmt::format("has the number {} where {} is due", seq, last.seq + 1));
      }
    } else if (line_of_.contains(prev)) {
      const std::int64_t continued = line_of_.at(prev);
      fault(line,
            fmt::format("continues line {}, as line {} does: the log was forked, or the lines "
                        "between were added later",
                        continued, continued + 1));
    } else if (line == 1) {
      fault(line, fmt::format("has the number {} and continues another line: the lines before it "
                              "are missing",
                              seq));
    } else if (seq != last.seq + 1) {
      fault(line, fmt::format("has the number {} where {} is due: lines before it are missing or "
                              "out of order",
                              seq, last.seq + 1));
    } else if (suspect_ == line - 1) {
      fault(line - 1, fmt::format("was changed after line {} was written", line));
      suspect_ = 0;
    } else {
      settle_suspicion();
      suspect_ = line;
    }
  }

  // Reports a line that does not continue the one before it, if no later line says which of the two
  // was changed.
  void settle_suspicion() {
    if (suspect_ != 0) {
      fault(suspect_ - 1,
            fmt::format("or line {} was changed: the one does not continue the other", suspect_));
      suspect_ = 0;
    }
  }

  void check_head(const AuditHead& last, const json& object, std::string_view line) {
    const Envelope envelope = envelope_of(object_field(object, "head"));
    const json payload = parse_json(envelope.payload);
    const bool is_exact =
        line == head_line({result_.head.seq - 1, text_field(object, "prev")}, envelope);
    if (!is_exact || envelope.payload_type != kHeadType ||
        count_field(payload, "seq") != result_.head.seq - 1 ||
        text_field(payload, "sha256") != text_field(object, "prev")) {
      fault(result_.lines,
            "was changed: it does not have the form of a signed head, or is one of "
            "other lines");
      return;
    }
    if (demands_.trusted.empty() || text_field(object, "prev") != last.sha256) {
      return;
    }
    const SignatureFinding found = find_signature(envelope, demands_.trusted);
    if (found.state == SignatureState::forged ||
        (found.state == SignatureState::trusted &&
         (envelope.signatures.size() != 1 || envelope.signatures[0].key_id != found.key_id))) {
      fault(result_.lines,
            fmt::format("was changed: its signature is not that of {}", found.signer));
    } else if (found.state == SignatureState::trusted) {
      result_.signed_lines = result_.lines;
      event_ = 0;
      result_.signer = found.signer;
    }
  }

  void note_unsigned() {
    if (event_ != 0 && !demands_.trusted.empty() && result_.unsigned_event == 0) {
      result_.unsigned_event = event_;
    }
    event_ = 0;
  }

  void check_time(const json& object) {
    const std::string& time = text_field(object, "time");
    if (time < last_time_ && result_.notes.size() < kMostFindings) {
      result_.notes.push_back(fmt::format("line {}: the clock went back, from {} to {}",
                                          result_.lines, printable(last_time_), printable(time)));
    }
    last_time_ = time;
  }

  void compare_heads() {
    for (const AuditHead& head : demands_.heads) {
      const auto found = known_.find(head.seq);
      if (found == known_.end()) {
        fault(result_.lines, fmt::format("is the last one, but a line with the number {} was "
                                         "written: the log was cut",
                                         head.seq));
      } else if (found->second != head.sha256) {
        fault(line_of_.at(found->second),
              fmt::format("or a line before it was changed, and all lines after it with it: its "
                          "digest was once {}",
                          head.sha256));
      }
    }
  }

  const AuditDemands& demands_;
  AuditCheck result_;
  std::unordered_map<std::string, std::int64_t> line_of_;  // by digest
  std::unordered_map<std::int64_t, std::string> known_;    // digests, by number
  std::string last_time_;
  std::int64_t event_ = 0;    // the line of an event that no trusted head has followed so far; or 0
  std::int64_t suspect_ = 0;  // a line that does not continue the one before it; or 0
};

}  // namespace

namespace {

// Waits until no writer appends, for at most 10 s: another reader or a stopped writer may hold the
// lock for ever, and a line that is half written is reported in any case.
void wait_for_writer(const File& file) {
  const Stopwatch watch;
  while (::flock(file.fd(), LOCK_SH | LOCK_NB) != 0) {
    if ((errno != EWOULDBLOCK && errno != EINTR) || watch.seconds() > kMostWaitSeconds) {
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace

AuditCheck check_audit_text(std::string_view text, const AuditDemands& demands) {
  return Checker(demands).check(text);
}

AuditCheck check_audit_log(const std::filesystem::path& path, const AuditDemands& demands) {
  const File file = File::open_to_read(path);
  wait_for_writer(file);
  return check_audit_text(read_file(path, kMostLogBytes), demands);
}

}  // namespace trireme
