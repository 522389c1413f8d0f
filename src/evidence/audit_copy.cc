#include "src/evidence/audit_copy.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <system_error>

#include <nlohmann/json.hpp>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "src/base/digest.h"
#include "src/base/error.h"
#include "src/base/json_fields.h"
#include "src/base/printable.h"

namespace trireme {
namespace {

constexpr std::string_view kSyslogSocket = "/dev/log";
constexpr std::string_view kJournaldSocket = "/run/systemd/journal/socket";
// rsyslog cuts longer messages by default, and the kernel refuses longer datagrams.
constexpr std::size_t kMostSyslogBytes = 8 << 10;
constexpr std::size_t kMostJournaldBytes = 64 << 10;
constexpr int kFacility = 10;         // authpriv: security messages that not everybody may read
constexpr int kSeverity = 5;          // notice
constexpr time_t kSecondsToTake = 5;  // seconds for a service that does not read

// Returns the time as RFC 3164 wants it, in English whatever the locale says.
std::string syslog_time() {
  constexpr std::array<const char*, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                   "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::localtime_r(&now, &parts);
  return fmt::format("{} {:2} {:02}:{:02}:{:02}",
                     kMonths.at(static_cast<std::size_t>(parts.tm_mon)), parts.tm_mday,
                     parts.tm_hour, parts.tm_min, parts.tm_sec);
}

// Returns what is sent of a line that is too long. Whoever has the line can compare it.
std::string summary_of(std::string_view line) {
  std::int64_t seq = -1;
  try {
    seq = count_field(parse_json(line), "seq");
  } catch (const DataError&) {
    // The digest is all there is.
  }
  return nlohmann::ordered_json{{"seq", seq}, {"bytes", line.size()}, {"sha256", sha256_hex(line)}}
      .dump();
}

}  // namespace

AuditCopy::AuditCopy(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string_view kind = text.substr(0, colon);
  is_journald_ = kind == "journald";
  socket_ = colon != std::string_view::npos ? text.substr(colon + 1)
            : is_journald_                  ? kJournaldSocket
                                            : kSyslogSocket;
  if ((!is_journald_ && kind != "syslog") || !socket_.starts_with('/') ||
      socket_.size() >= sizeof(sockaddr_un::sun_path)) {
    throw ConfigError(
        fmt::format("audit.copies: '{}' is no service that keeps logs: expected syslog, journald, "
                    "or one of them "
                    "with the path of its socket, as in syslog:/run/audit.sock",
                    printable(text)));
  }
}

std::string AuditCopy::name() const {
  return fmt::format("{} at {}", is_journald_ ? "journald" : "syslog", socket_);
}

void AuditCopy::fail(int code) const {
  const std::string reason = code == EAGAIN
                                 ? fmt::format("it has read nothing for {} s", kSecondsToTake)
                                 : std::generic_category().message(code);
  throw IoError(fmt::format(
      "cannot copy the audit log to {}: {}: start or repair the service, or remove it from "
      "audit.copies",
      name(), reason));
}

UniqueHandle<FileDescriptorTraits> AuditCopy::connected() const {
  UniqueHandle<FileDescriptorTraits> socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) {
    fail(errno);
  }
  sockaddr_un place{};
  place.sun_family = AF_UNIX;
  std::memcpy(place.sun_path, socket_.data(), socket_.size());
  const timeval wait{kSecondsToTake, 0};
  (void)::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&place), sizeof(place)) != 0) {
    fail(errno);
  }
  return socket;
}

std::string AuditCopy::datagram_of(std::string_view line) const {
  const std::size_t most = is_journald_ ? kMostJournaldBytes : kMostSyslogBytes;
  const std::string text = line.size() <= most ? std::string(line) : summary_of(line);
  if (is_journald_) {
    return fmt::format(
        "MESSAGE={}\nPRIORITY={}\nSYSLOG_FACILITY={}\nSYSLOG_IDENTIFIER=trireme\n"
        "TRIREME_AUDIT_SHA256={}\n",
        text, kSeverity, kFacility, sha256_hex(line));
  }
  return fmt::format("<{}>{} trireme[{}]: {}", 8 * kFacility + kSeverity, syslog_time(), ::getpid(),
                     text);
}

// Connects for each event, since the service may have been restarted meanwhile.
void AuditCopy::send(std::string_view lines) const {
  const auto socket = connected();
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    const std::string datagram = datagram_of(lines.substr(0, end));
    while (::send(socket.get(), datagram.data(), datagram.size(), MSG_NOSIGNAL) < 0) {
      if (errno != EINTR) {
        fail(errno);
      }
    }
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
}

}  // namespace trireme
