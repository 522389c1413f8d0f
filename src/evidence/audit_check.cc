#include "src/evidence/audit_check.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <thread>
#include <unordered_map>
#include <utility>

#include <nlohmann/json.hpp>
#include <sys/file.h>

#include "src/base/digest.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/json_fields.h"
#include "src/base/printable.h"
#include "src/base/stopwatch.h"
#include "src/evidence/audit_reader.h"
#include "src/evidence/worker_threads.h"

namespace trireme {
namespace {

using nlohmann::json;

constexpr std::size_t kMostFindings = 20;  // a log with more of them is not worth listing
constexpr double kMostWaitSeconds = 10;
constexpr std::int64_t kEndBytes = std::int64_t{1} << 20;

class Checker {
  // An event, or a head whose signature is to be checked.
  struct Mark {
    std::int64_t line = 0;
    std::optional<Envelope> head;
  };

 public:
  explicit Checker(const AuditDemands& demands) : demands_(demands) {
    for (const AuditHead& head : demands.heads) {
      known_.try_emplace(head.seq);
    }
  }

  // Takes for granted that the line is as it was written.
  void begin_at(const AuditReader::Line& line) {
    ++result_.lines;
    result_.head = head_after({}, line.text);
    try {
      result_.head.seq = count_field(parse_json(line.text), "seq");
    } catch (const DataError& error) {
      fault(result_.lines, fmt::format("is no line of an audit log: {}", error.what()));
    }
    note_digest();
  }

  void add(const AuditReader::Line& line) {
    ++result_.lines;
    next(line);
    if (!line.has_end) {
      fault(result_.lines, "is incomplete: the log was cut within it, or its writer crashed");
    }
  }

  AuditCheck finish() {
    settle_suspicion();
    check_signatures();
    note_unsigned();
    compare_heads();
    join_faults();
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

  void next(const AuditReader::Line& line) {
    const AuditHead last = result_.head;
    result_.head =
        line.is_too_long() ? AuditHead{last.seq + 1, line.sha256} : head_after(last, line.text);
    try {
      if (line.is_too_long()) {
        throw DataError(fmt::format("it has {} bytes", line.bytes));
      }
      const json object = parse_json(line.text);
      result_.head.seq = count_field(object, "seq");
      const std::string& event = text_field(object, "event");
      check_chain(last, text_field(object, "prev"));
      if (event == kHeadEvent) {
        check_head(last, object, line.text);
      } else {
        mark({result_.lines, std::nullopt});
        add_note(object);
        demands_.event(result_.lines, object);
      }
    } catch (const DataError& error) {
      fault(result_.lines, fmt::format("is no line of an audit log: {}", error.what()));
    }
    note_digest();
  }

  void note_digest() {
    const std::uint64_t beginning = beginning_of(result_.head.sha256);
    digests_.push_back(beginning);
    if (is_indexed_) {
      line_of_.emplace(beginning, result_.lines);
    }
    const auto demanded = known_.find(result_.head.seq);
    if (demanded != known_.end() && demanded->second.line == 0) {
      demanded->second = {result_.head.sha256, result_.lines};
    }
  }

  // Returns the number of the line with this digest, or 0. Only damaged logs need the index.
  std::int64_t line_with(const std::string& digest) {
    if (!is_indexed_) {
      for (std::size_t i = 0; i < digests_.size(); ++i) {
        line_of_.emplace(digests_[i], static_cast<std::int64_t>(i + 1));
      }
      is_indexed_ = true;
    }
    if (digest.size() != result_.head.sha256.size()) {
      return 0;
    }
    const auto found = line_of_.find(beginning_of(digest));
    return found == line_of_.end() ? 0 : found->second;
  }

  // Returns the first 16 digits as a number, or 0 if they are none. Two lines with the same number
  // would only make a message about a fault less precise.
  static std::uint64_t beginning_of(std::string_view digest) {
    std::uint64_t value = 0;
    const std::string_view digits = digest.substr(0, 16);
    const auto [end, code] =
        std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    return code == std::errc() && end == digits.data() + digits.size() ? value : 0;
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
    } else if (const std::int64_t continued = line_with(prev); continued != 0) {
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
    mark({result_.lines, envelope});
  }

  void mark(Mark mark) {
    if (demands_.trusted.empty()) {
      return;
    }
    marks_.push_back(std::move(mark));
    if (marks_.size() >= demands_.batch) {
      check_signatures();
    }
  }

  // Checks the signatures of the heads among the marks in several threads, and then takes the marks
  // in order.
  void check_signatures() {
    std::vector<SignatureFinding> found(marks_.size());
    std::atomic<std::size_t> next = 0;
    work_in_threads(demands_.threads, [&] {
      for (std::size_t at = next++; at < marks_.size(); at = next++) {
        if (marks_[at].head) {
          found[at] = find_signature(*marks_[at].head, demands_.trusted);
        }
      }
    });
    for (std::size_t at = 0; at < marks_.size(); ++at) {
      if (marks_[at].head) {
        take_head(marks_[at], found[at]);
      } else {
        note_unsigned();
        event_ = marks_[at].line;
      }
    }
    marks_.clear();
  }

  void take_head(const Mark& mark, const SignatureFinding& found) {
    if (found.state == SignatureState::forged ||
        (found.state == SignatureState::trusted &&
         (mark.head->signatures.size() != 1 || !found.are_named))) {
      AuditFault fault{mark.line,
                       fmt::format("was changed: its signature is not that of {}", found.signer())};
      if (signature_faults_.size() < kMostFindings) {
        signature_faults_.push_back(std::move(fault));
      } else {
        ++result_.faults_not_listed;
      }
    } else if (found.state == SignatureState::trusted) {
      result_.signed_lines = mark.line;
      event_ = 0;
      result_.signer = found.signer();
    } else if (found.state == SignatureState::revoked && !std::exchange(noted_revoked_, true)) {
      result_.notes.push_back(fmt::format("line {} is signed by {}", mark.line, found.signer()));
    }
  }

  // Puts the faults of signatures, which were found later, where they belong.
  void join_faults() {
    std::vector<AuditFault>& faults = result_.faults;
    faults.insert(faults.end(), signature_faults_.begin(), signature_faults_.end());
    std::stable_sort(faults.begin(), faults.end(),
                     [](const AuditFault& a, const AuditFault& b) { return a.line < b.line; });
    if (faults.size() > kMostFindings) {
      result_.faults_not_listed += std::ssize(faults) - static_cast<std::int64_t>(kMostFindings);
      faults.resize(kMostFindings);
    }
  }

  void note_unsigned() {
    if (event_ != 0 && !demands_.trusted.empty() && result_.unsigned_event == 0) {
      result_.unsigned_event = event_;
    }
    event_ = 0;
  }

  void add_note(const json& object) {
    const std::string note = note_of_event(object, last_time_);
    last_time_ = text_field(object, "time");
    if (!note.empty() && result_.notes.size() < kMostFindings) {
      result_.notes.push_back(fmt::format("line {}: {}", result_.lines, note));
    }
  }

  void compare_heads() {
    for (const AuditHead& head : demands_.heads) {
      const Known& found = known_.at(head.seq);
      if (found.line == 0) {
        fault(result_.lines, fmt::format("is the last one, but a line with the number {} was "
                                         "written: the log was cut",
                                         head.seq));
      } else if (found.sha256 != head.sha256) {
        fault(found.line,
              fmt::format("or a line before it was changed, and all lines after it with it: its "
                          "digest was once {}",
                          head.sha256));
      }
    }
  }

  const AuditDemands& demands_;
  AuditCheck result_;
  struct Known {
    std::string sha256;
    std::int64_t line = 0;  // 0 if there is no such line so far
  };
  std::unordered_map<std::int64_t, Known> known_;  // the lines that are demanded, by number
  std::vector<std::uint64_t> digests_;             // their beginnings, of all lines
  std::unordered_map<std::uint64_t, std::int64_t> line_of_;  // the same, if is_indexed_
  bool is_indexed_ = false;
  std::string last_time_;
  std::vector<Mark> marks_;
  bool noted_revoked_ = false;
  std::vector<AuditFault> signature_faults_;
  std::int64_t event_ = 0;    // the line of an event that no trusted head has followed so far; or 0
  std::int64_t suspect_ = 0;  // a line that does not continue the one before it; or 0
};

// Returns the size of the log when no writer appends. Waits for at most 10 s: another reader or a
// stopped writer may hold the lock for ever, and a line that is half written is reported in any
// case. The lock is given back at once, since writers wait for it no longer than that.
std::int64_t size_between_writes(const File& file) {
  const Stopwatch watch;
  while (::flock(file.fd(), LOCK_SH | LOCK_NB) != 0) {
    if ((errno != EWOULDBLOCK && errno != EINTR) || watch.seconds() > kMostWaitSeconds) {
      return file.size();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  const std::int64_t bytes = file.size();
  (void)::flock(file.fd(), LOCK_UN);
  return bytes;
}

}  // namespace

AuditCheck check_audit_text(std::string_view text, const AuditDemands& demands) {
  Checker checker(demands);
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    AuditReader::Line read{line.substr(0, kMostAuditLineBytes), std::ssize(line)};
    read.sha256 = read.is_too_long() ? sha256_hex(line) : "";
    read.has_end = end != std::string_view::npos;
    checker.add(read);
    text.remove_prefix(read.has_end ? end + 1 : text.size());
  }
  return checker.finish();
}

AuditCheck check_audit_log(const std::filesystem::path& path, const AuditDemands& demands) {
  const File file = File::open_to_read(path);
  AuditReader reader(file, 0, size_between_writes(file));
  Checker checker(demands);
  while (const std::optional<AuditReader::Line> line = reader.next()) {
    checker.add(*line);
  }
  return checker.finish();
}

AuditCheck check_audit_end(const std::filesystem::path& path, const AuditDemands& demands) {
  const File file = File::open_to_read(path);
  const std::int64_t end = size_between_writes(file);
  const std::int64_t begin = std::max<std::int64_t>(0, end - kEndBytes);
  AuditReader reader(file, begin, end);
  Checker checker(demands);
  if (begin > 0) {
    (void)reader.next();  // the end of a line
    if (const std::optional<AuditReader::Line> line = reader.next()) {
      checker.begin_at(*line);
    }
  }
  while (const std::optional<AuditReader::Line> line = reader.next()) {
    checker.add(*line);
  }
  return checker.finish();
}

std::string lack_of_trust(const AuditCheck& check, const AuditDemands& demands) {
  if (demands.trusted.empty() || (check.signed_lines == check.lines && check.unsigned_event == 0)) {
    return "";
  }
  if (check.signed_lines == check.lines) {
    return fmt::format(
        "the event of line {} has no signature of a trusted key; those of later lines do not "
        "vouch for it",
        check.unsigned_event);
  }
  return check.signed_lines == 0
             ? "no line is signed by a trusted key"
             : fmt::format("the lines after line {} are not signed by a trusted key",
                           check.signed_lines);
}

}  // namespace trireme
