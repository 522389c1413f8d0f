#include "src/keys/keyring_key.h"

#include <cerrno>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/keyctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/base/base64.h"
#include "src/base/error.h"
#include "src/keys/key_file.h"
#include "src/keys/key_ring.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using testing::HasSubstr;

// Puts keys into the user keyring and removes them at the end.
class KernelKeyring : public testing::Test {
 protected:
  void SetUp() override {
    if (add("trireme-test-probe", "x") < 0) {
      GTEST_SKIP() << "keyrings are forbidden here: " << std::strerror(errno);
    }
  }
  void TearDown() override {
    for (const long key : keys_) {
      ::syscall(SYS_keyctl, KEYCTL_UNLINK, key, KEY_SPEC_USER_KEYRING);
    }
  }
  long add(const std::string& description, std::string_view bytes) {
    const long key = ::syscall(SYS_add_key, "user", description.c_str(), bytes.data(), bytes.size(),
                               KEY_SPEC_USER_KEYRING);
    keys_.push_back(key);
    return key;
  }
  // Returns a name that no other test uses.
  static std::string name() { return "trireme-test-" + DataKey::generate().id(); }

  std::vector<long> keys_;
};

TEST_F(KernelKeyring, AKeyWrapsAndUnwraps) {
  const std::string key = name();
  add(key, std::string(32, 'k'));
  const KeyRing ring({"keyring:" + key});
  const DataKey data = DataKey::generate();
  const WrappedKeys wrapped = ring.wrap(data, "contents");
  EXPECT_EQ(wrapped.recipients[0].kind, "keyring");
  EXPECT_EQ(wrapped.recipients[0].key,
            DataKey(Secret(std::string_view(std::string(32, 'k')))).id());
  EXPECT_EQ(wrapped.recipients[0].name, key);
  EXPECT_EQ(ring.unwrap(wrapped, "it").id(), data.id());
  EXPECT_THAT(ring.keys()[0]->title(), HasSubstr("key '" + key + "' in the kernel's keyring ("));
}

TEST_F(KernelKeyring, AKeyMayMoveBetweenFileAndKeyring) {
  const TempFolder folder;
  KeyFile::create(folder.path() / "k", "");
  std::ifstream file(folder.path() / "k");
  std::string word;
  while (word != "TRIREME-KEY-1" && file >> word) {
  }
  file >> word;
  const std::string key = name();
  add(key, from_base64(word));
  const DataKey data = DataKey::generate();
  const KeyRing of_file({"file:" + (folder.path() / "k").string()});
  const KeyRing of_kernel({"keyring:" + key});
  EXPECT_EQ(of_kernel.unwrap(of_file.wrap(data, "contents"), "it").id(), data.id());
  EXPECT_EQ(of_file.unwrap(of_kernel.wrap(data, "contents"), "it").id(), data.id());
}

TEST_F(KernelKeyring, OtherKeysAreRefused) {
  const std::string absent = name();
  EXPECT_THAT(message_of<NotFound>([&] { (void)KeyringKey::load(absent); }),
              HasSubstr("the key '" + absent + "' in the kernel's keyring is absent"));
  for (const std::size_t bytes : {1, 31, 33, 5000}) {
    const std::string key = name();
    add(key, std::string(bytes, 'k'));
    EXPECT_THAT(message_of<DataError>([&] { (void)KeyringKey::load(key); }),
                HasSubstr("bytes, not 32"));
  }
  const std::string revoked = name();
  ::syscall(SYS_keyctl, KEYCTL_REVOKE, add(revoked, std::string(32, 'k')));
  EXPECT_THROW((void)KeyringKey::load(revoked), Error);  // NotFound once it is collected
  const std::string secret = name();
  const long key = add(secret, std::string(32, 'k'));
  constexpr long kViewOnly = 0x01010000;  // for possessor and owner
  ASSERT_EQ(::syscall(SYS_keyctl, KEYCTL_SETPERM, key, kViewOnly), 0);
  EXPECT_THAT(message_of<PolicyError>([&] { (void)KeyringKey::load(secret); }),
              HasSubstr("may not be read by this process"));
}

}  // namespace
}  // namespace trireme
