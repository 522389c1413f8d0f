#include "src/keys/passphrase_key.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "src/base/base64.h"
#include "src/base/error.h"
#include "src/keys/key_ring.h"
#include "tests/support/message_of.h"
#include "tests/support/on_terminal.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using testing::HasSubstr;
using testing::Not;

class Passphrase : public testing::Test {
 protected:
  std::filesystem::path file(const std::string& text, const std::string& name = "passphrase") {
    const std::filesystem::path path = folder_.path() / name;
    std::filesystem::remove(path);
    std::ofstream(path) << text;
    ::chmod(path.c_str(), 0600);
    return path;
  }
  TempFolder folder_;
};

DataKey counted_key() {
  Secret bytes(DataKey::kBytes);
  for (std::size_t i = 0; i < bytes.bytes(); ++i) {
    bytes.data()[i] = static_cast<unsigned char>(i);
  }
  return DataKey(std::move(bytes));
}

// The values are those of Python's cryptography package, by tests/keys/golden.py.
Recipient python_recipient() {
  return {std::string(kPassphraseKind), "4ae969736ec07aa434b07eaa6a6022a6", "",
          from_base64("ICEiIyQlJicoKSors+bK3Anu64e48NcSZnYzOn0ofRp/ECzzdHZhmnya/yFT2wShJUA0B+dTt+pF"
                      "rzfQ"),
          JsonValue::parse(R"({"kdf": "scrypt", "log2_n": 17, "r": 8, "p": 1,
                               "salt": "QEFCQ0RFRkdISUpLTE1OTw=="})")};
}

TEST(Scrypt, IsThatOfTheStandard) {  // RFC 7914, section 12, the first 32 of 64 bytes
  EXPECT_EQ(to_base64(scrypt("password", {10, 8, 16, "NaCl"}).view()),
            "/bq+HJ00cgB4VucZDQHp/nxq18vII3gw53N2Y0s3MWI=");
  EXPECT_EQ(to_base64(scrypt("pleaseletmein", {14, 8, 1, "SodiumChloride"}).view()),
            "cCO9yzr9c0hGHAbNgf046/2o+7qQT44+qbVD9lRdofI=");
}

TEST(Scrypt, ParametersAreBounded) {
  const JsonValue good = python_recipient().parameters;
  EXPECT_EQ(to_json(parse_scrypt(good))->dump(), good->dump());
  const auto refused = [&](const char* field, const nlohmann::json& value) {
    JsonValue changed = good;
    (*changed)[field] = value;
    return message_of<DataError>([&] { (void)parse_scrypt(changed); });
  };
  for (const nlohmann::json& log2_n : {nlohmann::json(24U), nlohmann::json(9U), nlohmann::json(-1),
                                       nlohmann::json(1e9), nlohmann::json("17")}) {
    EXPECT_THAT(refused("log2_n", log2_n), HasSubstr("log2_n"));
  }
  EXPECT_THAT(refused("log2_n", 21U), HasSubstr("would take more than 1024 MiB of memory"));
  EXPECT_THAT(refused("r", 0U), HasSubstr("r"));
  EXPECT_THAT(refused("r", 1000000U), HasSubstr("r"));
  EXPECT_THAT(refused("p", 64U), HasSubstr("or too much time"));
  EXPECT_THAT(refused("kdf", "argon2id"), HasSubstr("kdf is not scrypt"));
  EXPECT_THAT(refused("salt", "AAAA"), HasSubstr("salt does not have 16 to 64 bytes"));
  EXPECT_THAT(refused("salt", to_base64(std::string(65, 'x'))), HasSubstr("salt does not have"));
  EXPECT_THROW((void)parse_scrypt(JsonValue()), DataError);
  JsonValue most = good;
  (*most)["log2_n"] = 20U;
  EXPECT_EQ(parse_scrypt(most).log2_n, 20);
}

TEST_F(Passphrase, UnwrapsWhatAnotherImplementationWrapped) {
  const auto key = PassphraseKey::load(file("correct horse battery\nmore\n"));
  const DataKey expected = counted_key();
  const std::optional<DataKey> unwrapped = key->unwrap(python_recipient(), expected.id());
  ASSERT_TRUE(unwrapped.has_value());
  EXPECT_EQ(unwrapped->bytes().view(), expected.bytes().view());
}

TEST_F(Passphrase, OfAFileWrapsAndUnwraps) {
  const std::string uri = "passphrase-file:" + file("some long passphrase").string();
  const DataKey data = DataKey::generate();
  const KeyRing ring({uri});
  const WrappedKeys wrapped = ring.wrap(data, "contents");
  const std::vector<Recipient>& recipients = wrapped.recipients;
  ASSERT_EQ(recipients.size(), 1U);
  EXPECT_EQ(recipients[0].kind, "passphrase");
  EXPECT_EQ(ring.wrap(data, "contents").recipients[0].key, recipients[0].key);  // the same salt
  EXPECT_EQ(ring.unwrap(wrapped, "it").id(), data.id());
  const KeyRing another({uri});  // as in a later process, which has another salt
  EXPECT_EQ(another.unwrap(wrapped, "it").id(), data.id());
  EXPECT_NE(another.wrap(data, "contents").recipients[0].key, recipients[0].key);
  EXPECT_EQ(another.unwrap(wrapped, "it").id(), data.id());
}

TEST_F(Passphrase, ChangesAndOthersAreFound) {
  const KeyRing ring({"passphrase-file:" + file("some long passphrase").string()});
  const KeyRing other({"passphrase-file:" + file("another passphrase", "other").string()});
  const WrappedKeys wrapped = ring.wrap(DataKey::generate(), "contents");
  EXPECT_THAT(message_of<PolicyError>([&] { (void)other.unwrap(wrapped, "it"); }),
              HasSubstr("this is encrypted for passphrase " + wrapped.recipients[0].key +
                        ", and not for the passphrase in /"));
  WrappedKeys changed = wrapped;
  changed.recipients[0].wrapped[20] ^= 1;
  EXPECT_THAT(message_of<DataError>([&] { (void)ring.unwrap(changed, "it"); }),
              HasSubstr("it: what is wrapped for the passphrase in /"));
  changed = wrapped;
  (*changed.recipients[0].parameters)["log2_n"] = 40U;
  EXPECT_THAT(message_of<DataError>([&] { (void)ring.unwrap(changed, "it"); }),
              HasSubstr("log2_n"));
}

TEST_F(Passphrase, GivesUpOnManyOthers) {
  const KeyRing ring({"passphrase-file:" + file("some long passphrase").string()});
  WrappedKeys wrapped = KeyRing().wrap(DataKey::generate(), "contents");
  JsonValue cheap = to_json(ScryptParameters{10, 1, 1, std::string(16, 's')});
  wrapped.recipients.assign(16, {std::string(kPassphraseKind), "0123", "", "", cheap});
  EXPECT_THAT(message_of<PolicyError>([&] { (void)ring.unwrap(wrapped, "it"); }),
              HasSubstr("opens none of 16 recipients that are passphrases"));
  wrapped.recipients.pop_back();
  EXPECT_THAT(message_of<PolicyError>([&] { (void)ring.unwrap(wrapped, "it"); }),
              HasSubstr("this is encrypted for passphrase 0123"));
}

TEST_F(Passphrase, ShortAndMissingOnesAreRefused) {
  EXPECT_THROW((void)PassphraseKey::load(file("\n")), DataError);
  EXPECT_THAT(message_of<DataError>([&] { (void)PassphraseKey::load(file("short\n")); }),
              HasSubstr("the passphrase has fewer than 8 bytes: choose a longer one"));
  EXPECT_THROW((void)PassphraseKey::load(folder_.path() / "none"), NotFound);
  EXPECT_THAT(message_of<ConfigError>([] { (void)KeyRing({"passphrase:hunter2"}); }),
              Not(HasSubstr("hunter2")));
}

// Wraps and unwraps with a passphrase that is asked for. Returns 0 if both are the same key.
int wrap_by_hand() {
  const DataKey data = DataKey::generate();
  const KeyRing ring({"passphrase:"});
  return ring.unwrap(ring.wrap(data, "contents"), "it").id() == data.id() ? 0 : 2;
}

TEST_F(Passphrase, IsAskedForTwiceBeforeItEncrypts) {
  const std::string typed = "some long passphrase\n";
  const ShownText shown = on_terminal({typed, typed}, wrap_by_hand);
  EXPECT_EQ(shown.exit_code, 0);
  EXPECT_EQ(shown.text, "Passphrase: \r\nThe passphrase again: \r\n");
  EXPECT_THAT(on_terminal({typed, "some log passphrase\n"}, wrap_by_hand).text,
              HasSubstr("the two passphrases differ: nothing was encrypted"));
  EXPECT_THAT(on_terminal({"short\n"}, wrap_by_hand).text,
              HasSubstr("a passphrase has at least 8 bytes"));
}

TEST_F(Passphrase, IsAskedForOnceToDecrypt) {
  const auto unwrap = [] {
    const KeyRing ring({"passphrase:"});
    WrappedKeys wrapped = KeyRing().wrap(counted_key(), "contents");
    wrapped.recipients.push_back(python_recipient());
    const DataKey data = ring.unwrap(wrapped, "it");
    return ring.wrap(data, "contents").recipients.size() == 1 ? 0 : 2;
  };
  const ShownText shown = on_terminal({"correct horse battery\n"}, unwrap);
  EXPECT_EQ(shown.exit_code, 0);
  EXPECT_EQ(shown.text, "Passphrase: \r\n");
}

TEST_F(Passphrase, NeedsATerminalAtOnce) {
  const ShownText shown = without_terminal([] {
    (void)KeyRing({"passphrase:"});
    return 0;
  });
  EXPECT_THAT(shown.text,
              HasSubstr("there is no terminal to ask on: write the passphrase to a file "
                        "that only you can read, and name it as passphrase-file:PATH"));
}

}  // namespace
}  // namespace trireme
