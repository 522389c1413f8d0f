// Tests the copies of audit events with sockets of this test, which speaks the protocol of syslog
// and journald.
#include "src/evidence/audit_copy.h"

#include <cstring>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/socket.h>
#include <sys/un.h>

#include "src/base/digest.h"
#include "src/base/error.h"
#include "src/evidence/audit_log.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using testing::StartsWith;

// A service that takes datagrams on a socket.
class Service {
 public:
  explicit Service(const std::filesystem::path& path)
      : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_un place{};
    place.sun_family = AF_UNIX;
    std::strncpy(place.sun_path, path.c_str(), sizeof(place.sun_path) - 1);
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<sockaddr*>(&place), sizeof(place)), 0);
  }
  // Returns the next datagram, or "" if none has come.
  std::string next() const {
    std::string bytes(300 << 10, '\0');
    const ssize_t got = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
    bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    return bytes;
  }

 private:
  UniqueHandle<FileDescriptorTraits> socket_;
};

class AuditCopyTest : public testing::Test {
 protected:
  TempFolder folder_;
  const std::string path_ = (folder_.path() / "socket").string();
};

TEST_F(AuditCopyTest, SyslogGetsEachLineAsAMessage) {
  const Service service(path_);
  AuditLog log(folder_.path() / "audit.jsonl");
  std::string lines;
  log.append("train.start", {{"run", "here"}}, &lines);
  AuditCopy("syslog:" + path_).send(lines);
  const std::string first = service.next();
  EXPECT_THAT(first, MatchesRegex("<85>[A-Z][a-z][a-z] [ 0-9][0-9] [0-9][0-9]:[0-9][0-9]:[0-9][0-9]"
                                  " trireme\\[[0-9]+\\]: \\{.*\\}"));
  EXPECT_THAT(first, HasSubstr("log.created"));
  const std::string second = service.next();
  EXPECT_EQ(second.substr(second.find('{')) + "\n", lines.substr(lines.find('\n') + 1));
  EXPECT_THAT(second, HasSubstr("train.start"));
  EXPECT_EQ(service.next(), "");
}

TEST_F(AuditCopyTest, JournaldGetsFields) {
  const Service service(path_);
  AuditCopy("journald:" + path_).send("{\"seq\":5}\n");
  EXPECT_EQ(service.next(),
            "MESSAGE={\"seq\":5}\nPRIORITY=5\nSYSLOG_FACILITY=10\nSYSLOG_IDENTIFIER=trireme\n"
            "TRIREME_AUDIT_SHA256=" +
                sha256_hex("{\"seq\":5}") + "\n");
}

TEST_F(AuditCopyTest, LongLinesAreCopiedAsTheirDigest) {
  const Service service(path_);
  const std::string line = "{\"seq\":7,\"text\":\"" + std::string(200 << 10, 'x') + "\"}";
  for (const char* kind : {"syslog:", "journald:"}) {
    AuditCopy(kind + path_).send(line + "\n");
    const std::string got = service.next();
    EXPECT_THAT(got, HasSubstr("{\"seq\":7,\"bytes\":" + std::to_string(line.size()) +
                               ",\"sha256\":\"" + sha256_hex(line)));
    EXPECT_LT(got.size(), 1000U);
  }
}

TEST_F(AuditCopyTest, AServiceThatIsNotThereIsAnError) {
  const AuditCopy copy("syslog:" + path_);
  EXPECT_THROW(copy.check(), IoError);
  { const Service gone(path_); }
  try {
    copy.send("{}\n");
    ADD_FAILURE() << "nobody has read it";
  } catch (const IoError& error) {
    EXPECT_THAT(error.what(), StartsWith("cannot copy the audit log to syslog at " + path_));
  }
}

TEST(AuditCopyNames, AreSyslogAndJournald) {
  EXPECT_EQ(AuditCopy("syslog").name(), "syslog at /dev/log");
  EXPECT_EQ(AuditCopy("journald").name(), "journald at /run/systemd/journal/socket");
  const std::vector<std::string> all = {"",
                                        "rsyslog",
                                        "syslog:",
                                        "syslog:relative",
                                        "journald:tcp",
                                        ":/x",
                                        "syslog:/" + std::string(200, 'x')};
  for (const std::string& bad : all) {
    EXPECT_THROW(AuditCopy{bad}, ConfigError) << bad;
  }
}

}  // namespace
}  // namespace trireme
