#include "src/evidence/audit_line.h"

#include <algorithm>
#include <charconv>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/digest.h"
#include "src/base/error.h"
#include "src/base/json_fields.h"
#include "src/base/log.h"
#include "src/base/printable.h"

namespace trireme {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kDigestDigits = 64;
constexpr std::string_view kHexDigits = "0123456789abcdef";

std::string dumped(const ordered_json& object) {
  return object.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace

std::string to_text(const AuditHead& head) { return fmt::format("{}:{}", head.seq, head.sha256); }

AuditHead parse_audit_head(std::string_view text) {
  AuditHead head;
  const char* const end = text.data() + text.size();
  const auto [at, code] = std::from_chars(text.data(), end, head.seq);
  const std::string_view rest(at, static_cast<std::size_t>(end - at));
  if (code != std::errc() || head.seq < 0 || rest.size() != kDigestDigits + 1 || rest[0] != ':' ||
      rest.find_first_not_of(kHexDigits, 1) != std::string_view::npos) {
    throw ConfigError(
        fmt::format("'{}' is not the head of a log: expected NUMBER:SHA256, as "
                    "trireme audit verify prints it",
                    printable(text.substr(0, 200))));
  }
  head.sha256 = rest.substr(1);
  return head;
}

std::string event_line(const AuditHead& last, std::string_view event, const ordered_json& details) {
  ordered_json line = {{"seq", last.seq + 1}, {"prev", last.sha256}, {"time", utc_now()},
                       {"host", host_name()}, {"uid", ::geteuid()},  {"pid", ::getpid()},
                       {"event", event},      {"details", details}};
  std::string text = dumped(line);
  if (std::ssize(text) > kMostAuditLineBytes) {
    const std::string omitted = dumped(details);
    line["details"] = {{"omitted_bytes", omitted.size()}, {"sha256", sha256_hex(omitted)}};
    text = dumped(line);
  }
  return text;
}

std::string head_line(const AuditHead& last, const Envelope& envelope) {
  return dumped({{"seq", last.seq + 1},
                 {"prev", last.sha256},
                 {"event", kHeadEvent},
                 {"head", to_json(envelope)}});
}

std::string head_line(const AuditHead& last, const SigningKey& key) {
  const ordered_json payload = {
      {"seq", last.seq}, {"sha256", last.sha256}, {"time", utc_now()}, {"host", host_name()}};
  return head_line(last, make_envelope(std::string(kHeadType), dumped(payload), &key));
}

bool begins_as_head(std::string_view line) {
  constexpr std::string_view kDigits = "0123456789";
  const auto skip = [&line](std::string_view text) {
    const bool is_there = line.starts_with(text);
    line.remove_prefix(is_there ? text.size() : line.size());
  };
  skip("{\"seq\":");
  line.remove_prefix(std::min(line.find_first_not_of(kDigits), line.size()));
  skip(",\"prev\":\"");
  line.remove_prefix(std::min(line.find_first_not_of(kHexDigits), line.size()));
  return line.starts_with(fmt::format("\",\"event\":\"{}\",\"head\":", kHeadEvent));
}

AuditHead head_after(const AuditHead& last, std::string_view line) {
  return {last.seq + 1, sha256_hex(line)};
}

std::string note_of_event(const nlohmann::json& event, std::string_view last_time) {
  if (const std::string& time = text_field(event, "time"); time < last_time) {
    return fmt::format("the clock went back, from {} to {}", printable(last_time), printable(time));
  }
  if (text_field(event, "event") != "log.torn") {
    return "";
  }
  try {
    return fmt::format(
        "{} bytes of an incomplete line were removed before it: a crash has torn that line, or "
        "somebody has cut the log",
        count_field(object_field(event, "details"), "bytes"));
  } catch (const DataError&) {
    return "an incomplete line was removed before it";
  }
}

}  // namespace trireme
