// The lines of an audit log. Each line is a JSON object and holds the SHA-256 of the bytes of the
// line before it (without the line end), so that a change of any line but the last shows in the
// next one:
//
//   {"seq":0,"prev":"<64 zeros>","time":"...Z","host":"n1","uid":1000,"pid":7,
//    "event":"log.created",
//    "details":{"format":"trireme-audit","version":1,"id":"<32 digits>"}}
//   {"seq":1,"prev":"<SHA-256 of line 0>", ... ,"event":"train.start","details":{...}}
//   {"seq":2,"prev":"<SHA-256 of line 1>","event":"head","head":<envelope>}
//
// A head is a signature over all lines before it. The payload of its envelope, of the type
// kHeadType, is {"seq":1,"sha256":"<that of line 1>","time":"...","host":"..."}. Its line has no
// other contents, so that the signature fixes all of its bytes. Pure functions, except that lines
// hold the time, the host and the process.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "src/evidence/envelope.h"

namespace trireme {

inline constexpr std::int64_t kMostAuditLineBytes = 256 << 10;
inline constexpr std::string_view kHeadEvent = "head";
inline constexpr std::string_view kHeadType = "application/vnd.trireme.audit-head+json";

// Identifies the last line of a log, and with it all lines.
struct AuditHead {
  std::int64_t seq = -1;  // -1: there is no line
  std::string sha256 = std::string(64, '0');
  friend bool operator==(const AuditHead&, const AuditHead&) = default;
};
// "12:0123...": 12 is the number of the line and 0123... its digest. Throws ConfigError for other
// text.
std::string to_text(const AuditHead& head);
AuditHead parse_audit_head(std::string_view text);

// Returns the line that follows `last`, without its line end. Details that would make it too long
// are replaced by their size and digest.
std::string event_line(const AuditHead& last, std::string_view event,
                       const nlohmann::ordered_json& details);
// Returns the head that covers all lines up to `last`.
std::string head_line(const AuditHead& last, const SigningKey& key);
// Returns the line of a head with this envelope.
std::string head_line(const AuditHead& last, const Envelope& envelope);
// Returns whether the line begins as head_line() writes it. Then it is a head or no valid line.
bool begins_as_head(std::string_view line);
AuditHead head_after(const AuditHead& last, std::string_view line);
// Returns what whoever checks a log should know of an event: that the clock went back, or that a
// line before it was torn; or "". last_time: of the event before it, or "".
std::string note_of_event(const nlohmann::json& event, std::string_view last_time);

}  // namespace trireme
