#include "src/base/named_file.h"

#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/base/file.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"
#include "tests/support/unprivileged.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

TEST(NamedFile, IsRefusedBeforeTheWorkAsItWouldBeAfterIt) {
  const TempFolder folder;
  write_file_durably(folder.path() / "a", "old");
  check_named_file(folder.path() / "a");
  check_named_file(folder.path() / "new");
  const auto refused = [&]<class Kind>(const fs::path& path, const std::string& text, Kind*) {
    EXPECT_THAT(message_of<Kind>([&] { check_named_file(path); }), HasSubstr(text));
    EXPECT_THAT(message_of<Kind>([&] { write_named_file(path, "new"); }), HasSubstr(text));
  };
  refused(folder.path(), "name a regular file", static_cast<PolicyError*>(nullptr));
  refused("/dev/null", "name a regular file", static_cast<PolicyError*>(nullptr));
  refused(folder.path() / "no/a", "cannot write", static_cast<NotFound*>(nullptr));
  // The name fits, but not that of the file that is renamed to it.
  refused(folder.path() / std::string(255, 'n'), "choose a shorter one",
          static_cast<ConfigError*>(nullptr));
  refused(folder.path() / std::string(256, 'n'), "choose a shorter one",
          static_cast<ConfigError*>(nullptr));
  EXPECT_THAT(message_of<ConfigError>([] { check_named_file("-"); }),
              HasSubstr("does not mean standard output"));
}

TEST(NamedFile, AFolderThatCannotBeWrittenToIsRefused) {
  const TempFolder folder;
  fs::permissions(folder.path(),
                  fs::perms::owner_all | fs::perms::others_read | fs::perms::others_exec);
  const Unprivileged user;
  if (!user.bound()) {
    GTEST_SKIP() << "needs to run as root, or as a user to whom permissions apply";
  }
  const fs::path path = folder.path() / "a";
  EXPECT_THAT(message_of<PolicyError>([&] { check_named_file(path, "--csv"); }),
              HasSubstr("cannot write --csv " + path.string()));
  EXPECT_THAT(message_of<PolicyError>([&] { write_named_file(path, ""); }),
              HasSubstr("cannot write"));
}

}  // namespace
}  // namespace trireme
