// AuditCopy sends lines of the audit log to a service of the host that keeps logs, where those who
// may write to the audit log cannot change them. The service is syslog (RFC 3164, section 4.1) or
// journald (https://systemd.io/JOURNAL_NATIVE_PROTOCOL/), each on a datagram socket of the host. A
// value; one thread at a time.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "src/base/file.h"

namespace trireme {

class AuditCopy {
 public:
  // text: "syslog" for /dev/log, "journald" for its socket, or either with another socket, as in
  // "syslog:/run/audit.sock". Throws ConfigError for anything else.
  explicit AuditCopy(std::string_view text);

  // lines: each with its line end. Sends each as one datagram, with the facility authpriv and the
  // severity notice. Of a line that is too long for the service, sends the number, the length and
  // the digest. Throws IoError if the service is missing, or does not take a line within 5 s.
  void send(std::string_view lines) const;
  // Throws IoError if nobody listens on the socket.
  void check() const { (void)connected(); }

  // Returns what the copy is called in messages, such as "syslog at /dev/log".
  std::string name() const;

 private:
  [[noreturn]] void fail(int code) const;  // code: errno
  UniqueHandle<FileDescriptorTraits> connected() const;
  std::string datagram_of(std::string_view line) const;

  bool is_journald_ = false;
  std::string socket_;
};

}  // namespace trireme
