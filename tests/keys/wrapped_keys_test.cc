#include "src/keys/wrapped_keys.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "src/base/error.h"
#include "src/base/file.h"
#include "src/keys/key_file.h"
#include "src/keys/key_ring.h"
#include "src/keys/key_uri.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr char kContents[] = "sha256:0123";

class Keys : public testing::Test {
 protected:
  // Returns the URI of a new key file.
  std::string key(const std::string& name) {
    const fs::path path = folder_.path() / (name + ".key");
    KeyFile::create(path, name);
    return "file:" + path.string();
  }
  fs::path path(const std::string& name) const { return folder_.path() / name; }

  TempFolder folder_;
};

TEST_F(Keys, AnyRecipientUnwraps) {
  const std::string a = key("a");
  const std::string b = key("b");
  const DataKey data = DataKey::generate();
  const WrappedKeys wrapped = KeyRing({a, b}).wrap(data, kContents);
  EXPECT_EQ(wrapped.recipients.size(), 2U);
  const WrappedKeys read = parse_wrapped_keys(to_text(wrapped), "it");
  for (const std::string& uri : {a, b}) {
    const DataKey key = KeyRing({uri}).unwrap(read, "it");
    EXPECT_EQ(key.id(), data.id());
    EXPECT_EQ(key.bytes().view(), data.bytes().view());
    EXPECT_NO_THROW(check_wrapped_keys(read, key, kContents, "it"));
  }
}

TEST_F(Keys, AKeyThatIsNamedTwiceCountsOnce) {
  const std::string a = key("a");
  const std::string b = key("b");
  fs::copy_file(path("a.key"), path("copy.key"));
  for (const std::string& again : {a, "file:" + path("copy.key").string()}) {
    testing::internal::CaptureStderr();
    const KeyRing ring({a, b, again});
    EXPECT_THAT(testing::internal::GetCapturedStderr(),
                testing::MatchesRegex("warning: key file .* is named twice; it counts once\n"));
    EXPECT_EQ(ring.keys().size(), 2U);
    EXPECT_EQ(ring.wrap(DataKey::generate(), "").recipients.size(), 2U);
  }
  std::ofstream(path("words")) << "correct horse battery\n";
  fs::permissions(path("words"), fs::perms::owner_read);
  testing::internal::CaptureStderr();
  const std::string words = "passphrase-file:" + path("words").string();
  EXPECT_EQ(KeyRing({words, words}).keys().size(), 1U);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("is named twice"));
}

TEST_F(Keys, OthersDoNot) {
  const WrappedKeys wrapped = KeyRing({key("a")}).wrap(DataKey::generate(), kContents);
  const std::string other = message_of<PolicyError>(
      [&] { (void)KeyRing({key("other")}).unwrap(wrapped, "x/keys.json"); });
  EXPECT_THAT(other, HasSubstr("x/keys.json: this is encrypted for file "));
  EXPECT_THAT(other, HasSubstr("'a', and not for key file "));
  EXPECT_THAT(message_of<PolicyError>([&] { (void)KeyRing().unwrap(wrapped, "x"); }),
              HasSubstr("no key was given"));
  const WrappedKeys nobody = KeyRing().wrap(DataKey::generate(), kContents);
  EXPECT_THAT(message_of<PolicyError>([&] { (void)KeyRing({key("b")}).unwrap(nobody, "x"); }),
              HasSubstr("its last recipient was removed"));
}

TEST_F(Keys, ChangesAreFound) {
  const std::string uri = key("a");
  const KeyRing ring({uri});
  const DataKey data = DataKey::generate();
  const WrappedKeys wrapped = ring.wrap(data, kContents);
  const std::string text = to_text(wrapped);
  for (std::size_t i = 0; i < text.size(); i += 3) {  // the seal covers every byte
    std::string changed = text;
    changed[i] = changed[i] == 'x' ? 'y' : 'x';
    EXPECT_THROW((void)parse_wrapped_keys(changed, "it"), DataError) << i;
    EXPECT_THROW((void)parse_wrapped_keys(text.substr(0, i), "it"), DataError) << i;
  }
  // Whoever changes the file can seal it again, but does not have the data key.
  for (std::size_t i = 0; i < wrapped.recipients[0].wrapped.size(); ++i) {
    WrappedKeys changed = wrapped;
    changed.recipients[0].wrapped[i] ^= 1;
    EXPECT_THROW((void)ring.unwrap(changed, "it"), DataError) << i;
  }
  WrappedKeys changed = wrapped;
  changed.contents = "sha256:4567";
  EXPECT_THROW(check_wrapped_keys(changed, data, "sha256:4567", "it"), DataError);
  EXPECT_THAT(message_of<DataError>([&] { check_wrapped_keys(wrapped, data, "sha256:45", "it"); }),
              HasSubstr("belongs to another manifest"));
  changed = wrapped;
  changed.recipients.push_back(changed.recipients[0]);
  changed.recipients[1].key = "0123";
  EXPECT_THROW(check_wrapped_keys(changed, data, kContents, "it"), DataError);
  changed = wrapped;
  changed.recipients[0].name = "somebody else";
  EXPECT_THROW(check_wrapped_keys(changed, data, kContents, "it"), DataError);
  changed = wrapped;
  changed.recipients[0].parameters = JsonValue::parse(R"({"n": 1})");
  EXPECT_THROW(check_wrapped_keys(changed, data, kContents, "it"), DataError);
  changed = wrapped;
  changed.recipients.clear();
  EXPECT_THROW(check_wrapped_keys(changed, data, kContents, "it"), DataError);
  changed = wrapped;
  changed.data_key = DataKey::generate().id();
  EXPECT_THROW((void)ring.unwrap(changed, "it"), DataError);
}

TEST_F(Keys, AKeyFileIsForItsOwner) {
  const std::string uri = key("a");
  const fs::path file = path("a.key");
  EXPECT_EQ(fs::status(file).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_THROW(KeyFile::create(file, "again"), PolicyError);
  ::chmod(file.c_str(), 0640);
  EXPECT_THAT(message_of<PolicyError>([&] { (void)KeyRing({uri}); }),
              HasSubstr("is an encryption key that others can use (mode 0640): chmod 600 it"));
  EXPECT_THAT(message_of<NotFound>([&] { (void)KeyRing({"file:" + path("none").string()}); }),
              HasSubstr("none: no such file, where an encryption key is expected"));
  std::ofstream(path("long")) << std::string(5000, 'x');
  EXPECT_THAT(message_of<DataError>([&] { (void)KeyRing({"file:" + path("long").string()}); }),
              HasSubstr("too long for an encryption key: correct the path"));
  rlimit core{};
  ASSERT_EQ(::getrlimit(RLIMIT_CORE, &core), 0);
  EXPECT_EQ(core.rlim_cur, 0U);
}

TEST_F(Keys, DamagedKeyFilesAreRefused) {
  (void)key("a");
  const std::string good = read_file(path("a.key"));
  for (const std::string& text :
       {std::string(), std::string("# name\n"), good.substr(0, good.size() - 9), good + "more\n",
        "hello\n" + good, std::string(5000, 'x'), good + good, std::string("TRIREME-KEY-1 AAAA\n"),
        std::string("TRIREME-KEY-1 \n"), "TRIREME-KEY-1 " + std::string(43, 'A') + "=\n"}) {
    const fs::path file = path("bad.key");
    fs::remove(file);
    std::ofstream(file) << text;
    ::chmod(file.c_str(), 0600);
    EXPECT_THROW((void)KeyFile::load(file), DataError) << text;
  }
  std::ofstream(path("bad.key")) << "\n" << good;
  EXPECT_EQ(KeyFile::load(path("bad.key"))->name(), "a");
}

TEST(KeyUri, OtherTextsAreRefused) {
  for (const char* uri : {"", "file", "file:", "key.txt", "http://key", ":x", "keyring:", "keyring",
                          "passphrase", "passphrase:x", "passphrase-file:", "pkcs11", "pkcs11:"}) {
    EXPECT_THROW(check_key_uri(uri), ConfigError) << uri;
    EXPECT_THROW((void)KeyRing({uri}), ConfigError) << uri;
  }
}

TEST(KeyUri, NoMessageRepeatsWhatMayBeASecret) {
  for (const char* uri : {"hunter2", "hunter2:x", "passphrase%3Ahunter2", "pass:hunter2",
                          "passphrase:hunter2", "Hunter2:", "%66ile:hunter2"}) {
    EXPECT_THAT(message_of<ConfigError>([&] { check_key_uri(uri); }),
                testing::Not(testing::ContainsRegex("[Hh]unter2")))
        << uri;
  }
  EXPECT_THAT(message_of<ConfigError>([] { check_key_uri("pass:x"); }), HasSubstr("'pass'"));
}

}  // namespace
}  // namespace trireme
