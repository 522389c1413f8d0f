#include "src/keys/revoked_keys.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/keys/key_file.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class RevokedKeys : public testing::Test {
 protected:
  RevokedKeys() : before_(std::getenv("TRIREME_SITE_DIR")) {
    ::setenv("TRIREME_SITE_DIR", folder_.path().c_str(), 1);
    for (const char* name : {"old", "new"}) {
      KeyFile::create(folder_.path() / name, name);
    }
    wrapped_ = old_ring().wrap(data_, "contents");
  }
  ~RevokedKeys() override {
    if (before_ == nullptr) {
      ::unsetenv("TRIREME_SITE_DIR");
    } else {
      ::setenv("TRIREME_SITE_DIR", before_, 1);
    }
  }
  KeyRing old_ring() const { return KeyRing({"file:" + (folder_.path() / "old").string()}); }
  KeyRing new_ring() const { return KeyRing({"file:" + (folder_.path() / "new").string()}); }
  std::string old_id() const { return KeyFile::load(folder_.path() / "old")->id(); }
  void revoke(const std::string& text) const {
    std::ofstream(folder_.path() / kRevokedKeysName) << text;
  }

  const TempFolder folder_;
  const char* before_;
  const DataKey data_ = DataKey::generate();
  WrappedKeys wrapped_;
};

TEST_F(RevokedKeys, NeitherEncryptNorOpen) {
  EXPECT_EQ(old_ring().unwrap(wrapped_, "it").id(), data_.id());
  revoke("# stolen ones\n\n " + old_id() + "  stolen on 2026-03-01 \n");
  const std::string opening =
      message_of<PolicyError>([&] { (void)old_ring().unwrap(wrapped_, "it"); });
  EXPECT_THAT(opening, HasSubstr("it: the key file " + old_id() +
                                 " is revoked (stolen on 2026-03-01) and opens nothing"));
  EXPECT_THAT(opening, HasSubstr("; this is encrypted for file " + old_id()));
  EXPECT_THAT(opening, testing::Not(HasSubstr("and not for")));
  const std::string sealing =
      message_of<PolicyError>([&] { (void)old_ring().wrap(data_, "contents"); });
  EXPECT_THAT(sealing, HasSubstr("'old' is revoked (stolen on 2026-03-01) and encrypts nothing"));
  EXPECT_NO_THROW((void)new_ring().wrap(data_, "contents"));
}

TEST_F(RevokedKeys, LetOthersTakeTheirPlace) {
  const KeyRing both(
      {"file:" + (folder_.path() / "old").string(), "file:" + (folder_.path() / "new").string()});
  const WrappedKeys shared = both.wrap(data_, "contents");
  revoke(old_id() + "\n");
  EXPECT_EQ(unwrap_to_change(old_ring(), wrapped_, "it").id(), data_.id());
  EXPECT_EQ(both.unwrap(shared, "it").id(), data_.id());  // by the other key
  EXPECT_THAT(message_of<PolicyError>([&] { (void)both.wrap(data_, "contents"); }),
              HasSubstr("is revoked and encrypts nothing"));
  EXPECT_THAT(message_of<PolicyError>([&] { (void)new_ring().unwrap(wrapped_, "it"); }),
              HasSubstr("and not for key file"));
  EXPECT_THAT(message_of<PolicyError>([&] { (void)unwrap_to_change(new_ring(), wrapped_, "it"); }),
              testing::Not(HasSubstr("revoked")));
}

TEST_F(RevokedKeys, MisspeltLinesRefuseEverything) {
  const std::string id = old_id();
  for (const std::string& line :
       {id.substr(1), id + "0", "file " + id, "\"" + id + "\"", id.substr(0, 31) + "G", id + ","}) {
    revoke("# first\n" + line + "\n");
    EXPECT_THAT(message_of<PolicyError>([&] { (void)new_ring().wrap(data_, "contents"); }),
                HasSubstr(std::string(kRevokedKeysName) + ":2: "))
        << line;
  }
  revoke(std::string((1 << 20) + 1, '#'));
  EXPECT_THAT(message_of<PolicyError>([&] { (void)old_ring().unwrap(wrapped_, "it"); }),
              HasSubstr("nobody knows which keys are revoked"));
  fs::remove(folder_.path() / kRevokedKeysName);
  fs::create_directory(folder_.path() / kRevokedKeysName);
  EXPECT_THROW((void)old_ring().unwrap(wrapped_, "it"), PolicyError);
}

TEST_F(RevokedKeys, ALinkToNothingRefusesEverything) {
  fs::create_symlink(folder_.path() / "unmounted" / "list", folder_.path() / kRevokedKeysName);
  EXPECT_THAT(message_of<PolicyError>([&] { (void)old_ring().unwrap(wrapped_, "it"); }),
              HasSubstr("is a symbolic link to a file that does not exist"));
  std::ofstream(folder_.path() / "list") << old_id() << " stolen\n";
  fs::remove(folder_.path() / kRevokedKeysName);
  fs::create_symlink("list", folder_.path() / kRevokedKeysName);
  EXPECT_THAT(message_of<PolicyError>([&] { (void)old_ring().unwrap(wrapped_, "it"); }),
              HasSubstr("is revoked (stolen)"));
}

TEST_F(RevokedKeys, ThatEverybodyCanTakeBackRefuseEverything) {
  revoke(old_id() + "\n");
  fs::permissions(folder_.path() / kRevokedKeysName, fs::perms::others_write,
                  fs::perm_options::add);
  EXPECT_THAT(message_of<PolicyError>([&] { (void)new_ring().wrap(data_, "contents"); }),
              HasSubstr("can be changed by every user of this host"));
}

TEST_F(RevokedKeys, OfTheHostCountWhateverTheSite) {
  const std::string id(32, 'a');
  const std::string other(32, 'b');
  const TempFolder host;
  const auto found = [&] { return site_revoked_keys(host.path()); };
  EXPECT_TRUE(found().empty());
  std::ofstream(host.path() / kRevokedKeysName) << id << " stolen\n";
  ASSERT_EQ(found().size(), 1U);
  EXPECT_EQ(found()[0].reason, "stolen");
  revoke(other + "\n");
  EXPECT_NE(find_revoked(found(), id), nullptr);
  EXPECT_NE(find_revoked(found(), other), nullptr);
  EXPECT_EQ(site_revoked_keys(folder_.path()).size(), 1U);  // the same folder
  std::ofstream(host.path() / kRevokedKeysName) << "misspelt\n";
  EXPECT_THROW((void)found(), PolicyError);
}

TEST(RevokedKeyFile, HasOneKeyALine) {
  const std::string id(32, 'a');
  const std::string token(64, '7');
  const auto revoked = parse_revoked_keys("\r\n" + id + "\r\n# x\n" + token + "\ta  b ", "file");
  ASSERT_EQ(revoked.size(), 2U);
  EXPECT_EQ(revoked[0].key, id);
  EXPECT_EQ(revoked[0].reason, "");
  EXPECT_EQ(revoked[1].key, token);
  EXPECT_EQ(revoked[1].reason, "a  b");
  EXPECT_TRUE(parse_revoked_keys("", "file").empty());
}

}  // namespace
}  // namespace trireme
