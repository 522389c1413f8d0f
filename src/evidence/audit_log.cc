#include "src/evidence/audit_log.h"

#include <algorithm>
#include <cerrno>
#include <chrono>

#include <nlohmann/json.hpp>
#include <openssl/rand.h>
#include <unistd.h>

#include "src/base/check.h"
#include "src/base/digest.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/json_fields.h"
#include "src/base/lock_within.h"
#include "src/base/say.h"

namespace trireme {
namespace {

// Holds the end of a log: its last two whole lines, and what a crash has left after them.
struct Tail {
  AuditHead last;
  std::string line;         // the last whole one, without its line end
  std::string line_before;  // empty if there is none
  std::int64_t bytes = 0;   // of all whole lines
  std::string torn;
};

// Waits for other writers.
void lock(const File& file) {
  constexpr std::chrono::seconds kLongestWait{10};
  const int code = lock_within(file.fd(), kLongestWait, file.path());
  if (code != 0) {
    throw IoError(fmt::format(
        "cannot lock {}: {}; an audit log needs a file system with locks, so that two writers "
        "cannot fork it",
        file.path().string(), std::generic_category().message(code)));
  }
}

std::int64_t number_of(const std::string& line, const std::filesystem::path& path) {
  try {
    return count_field(parse_json(line), "seq");
  } catch (const DataError& error) {
    throw DataError(fmt::format(
        "{}: the last line of the audit log is damaged ({}): examine it with trireme audit verify, "
        "keep the file, and name a new one in audit.log",
        path.string(), error.what()));
  }
}

Tail read_tail(const std::filesystem::path& path) {
  const File file = File::open_to_read(path);
  const std::int64_t size = file.size();
  // The last two whole lines and a torn one after them.
  const std::int64_t begin = std::max<std::int64_t>(0, size - 3 * (kMostAuditLineBytes + 2));
  std::string text(static_cast<std::size_t>(size - begin), '\0');
  file.read_exactly_at(begin, text.data(), size - begin);
  Tail tail;
  const std::size_t end = text.rfind('\n');
  const std::size_t whole = end == std::string::npos ? 0 : end + 1;
  tail.torn = text.substr(whole);
  tail.bytes = begin + static_cast<std::int64_t>(whole);
  if (whole > 0) {
    const std::size_t before = end == 0 ? std::string::npos : text.rfind('\n', end - 1);
    const std::size_t first = before == std::string::npos ? 0 : before + 1;
    tail.line = text.substr(first, end - first);
    tail.last = {number_of(tail.line, path), sha256_hex(tail.line)};
    if (first > 0) {
      const std::size_t more = first == 1 ? std::string::npos : text.rfind('\n', first - 2);
      const std::size_t begin_before = more == std::string::npos ? 0 : more + 1;
      tail.line_before = text.substr(begin_before, first - 1 - begin_before);
    }
  } else if (begin > 0) {
    (void)number_of("", path);
  }
  return tail;
}

// Returns whether a crash, while an event and its head were written, has left the event and a part
// of the head.
bool has_torn_head(const Tail& tail) {
  if (tail.torn.empty() || tail.line.empty() || begins_as_head(tail.line)) {
    return false;
  }
  const std::string head = fmt::format(R"({{"seq":{},"prev":"{}","event":"{}","head":)",
                                       tail.last.seq + 1, tail.last.sha256, kHeadEvent);
  return tail.torn.starts_with(head) || head.starts_with(tail.torn);
}

// Counts the last whole line among what was torn. Returns it.
std::string take_last_line(Tail& tail, const std::filesystem::path& path) {
  std::string line = std::move(tail.line);
  tail.bytes -= std::ssize(line) + 1;
  tail.torn = line + "\n" + tail.torn;
  tail.last = tail.line_before.empty()
                  ? AuditHead()
                  : AuditHead{number_of(tail.line_before, path), sha256_hex(tail.line_before)};
  return line;
}

// Returns why the last whole line is not as it was written, or does not continue the one before it,
// or "". key: that signs this log; null without one.
std::string fault_of_end(const Tail& tail, const SigningKey* key) {
  if (tail.line.empty()) {
    return "";
  }
  try {
    const nlohmann::json last = parse_json(tail.line);
    const AuditHead before = tail.line_before.empty()
                                 ? AuditHead()
                                 : AuditHead{count_field(parse_json(tail.line_before), "seq"),
                                             sha256_hex(tail.line_before)};
    if (text_field(last, "prev") != before.sha256 || tail.last.seq != before.seq + 1) {
      return "its last line does not continue the one before it";
    }
    const bool is_head = text_field(last, "event") == kHeadEvent;
    if (key != nullptr && !is_head) {
      return "its last event has no signature";
    }
    if (key != nullptr &&
        find_signature(envelope_of(object_field(last, "head")), {{key->public_key(), ""}}).state ==
            SignatureState::forged) {
      return "the signature of its last event was forged or changed";
    }
    return "";
  } catch (const DataError& error) {
    return fmt::format("one of its last two lines is damaged ({})", error.what());
  }
}

void warn_of_end(const std::filesystem::path& path, const std::string& fault) {
  if (!fault.empty()) {
    say(
        fmt::format("trireme: warning: the audit log {} was not as its writers leave it: {}; "
                    "examine it with `trireme audit verify`, and if lines were changed, keep it "
                    "and name a new file in audit.log",
                    path.string(), fault));
  }
}

std::string random_id() {
  std::array<unsigned char, 16> bytes{};
  check(RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) == 1,
        "OpenSSL has a source of random bytes");
  std::string id;
  for (const unsigned char byte : bytes) {
    id += fmt::format("{:02x}", byte);
  }
  return id;
}

// Writes all lines, or leaves the log as it was.
void write_lines(File& file, const std::string& lines, std::int64_t old_bytes) {
  try {
    file.write(lines.data(), std::ssize(lines));
    file.sync();
  } catch (const Error&) {
    (void)!::ftruncate(file.fd(), old_bytes);
    throw;
  }
}

}  // namespace

AuditLog::AuditLog(std::filesystem::path path, std::optional<SigningKey> key)
    : path_(std::move(path)), key_(std::move(key)) {}

void AuditLog::check() const {
  const std::filesystem::path folder = path_.has_parent_path() ? path_.parent_path() : ".";
  std::error_code unknown;
  if (std::filesystem::exists(std::filesystem::symlink_status(path_, unknown))) {
    const File file = File::open_to_append_unlinked(path_);
    lock(file);
    (void)read_tail(path_);
  } else if (::access(folder.c_str(), W_OK | X_OK) != 0) {
    throw_errno(errno, "create", path_);
  }
  if (const std::int64_t free = free_bytes(folder); free < kMostAuditLineBytes) {
    throw IoError(fmt::format("{}: the disk has only {} bytes left", path_.string(), free));
  }
}

AuditHead AuditLog::append(std::string_view event, const nlohmann::ordered_json& details,
                           std::string* appended) {
  std::error_code unknown;
  const bool existed = std::filesystem::exists(path_, unknown);
  File file = File::open_to_append_unlinked(path_);
  lock(file);
  Tail tail = read_tail(path_);
  if (existed && tail.last.seq < 0 && tail.torn.empty()) {
    say(
        fmt::format("trireme: warning: the audit log {} exists, but is empty: unless somebody has "
                    "just made it, what was recorded there was removed",
                    path_.string()));
  }
  // An event that lost its head would be unsigned for ever, because nobody can vouch for it later.
  // It was not recorded: whoever wrote it has not gone on.
  const std::string unsigned_event = key_ && has_torn_head(tail) ? take_last_line(tail, path_) : "";
  warn_of_end(path_, !tail.torn.empty() ? "its last line is incomplete"
                                        : fault_of_end(tail, key_ ? &*key_ : nullptr));
  AuditHead head = tail.last;
  std::string lines;
  const auto add_line = [&](const std::string& line) {
    lines += line + "\n";
    head = head_after(head, line);
  };
  const auto add = [&](const std::string& line) {
    add_line(line);
    if (key_) {
      add_line(head_line(head, *key_));
    }
  };
  if (!tail.torn.empty() && ::ftruncate(file.fd(), tail.bytes) != 0) {
    throw_errno(errno, "remove the incomplete last line of", path_);
  }
  if (head.seq < 0) {
    add(event_line(head, "log.created",
                   {{"format", "trireme-audit"}, {"version", 1}, {"id", random_id()}}));
  }
  if (!tail.torn.empty()) {
    nlohmann::ordered_json removed = {{"bytes", tail.torn.size()},
                                      {"sha256", sha256_hex(tail.torn)}};
    if (!unsigned_event.empty()) {
      removed["unsigned"] = unsigned_event;
    }
    add(event_line(head, "log.torn", removed));
  }
  add(event_line(head, event, details));
  write_lines(file, lines, tail.bytes);
  if (tail.bytes == 0) {
    sync_directory(path_.has_parent_path() ? path_.parent_path() : ".");
  }
  if (appended != nullptr) {
    *appended = std::move(lines);
  }
  return head;
}

}  // namespace trireme
