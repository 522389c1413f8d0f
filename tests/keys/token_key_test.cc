#include "src/keys/token_key.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "src/base/base64.h"
#include "src/base/digest.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/keys/key_ring.h"
#include "tests/keys/soft_token.h"
#include "tests/support/message_of.h"
#include "tests/support/on_terminal.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using testing::HasSubstr;

class TokenKeys : public testing::Test {
 protected:
  void SetUp() override {
    if (!tokens_.exist()) {
      GTEST_SKIP() << "SoftHSM is not installed (Debian: softhsm2)";
    }
  }
  void TearDown() override { ::unsetenv("FAULTY_TOKEN"); }

  // Makes the key "key" in the token "first", once in this process.
  const std::string& key() {
    static const std::string rest = [&] {
      (void)create_token_key(tokens_.uri("token=first;object=key;id=%01%02"));
      return "token=first;object=key";
    }();
    return rest;
  }

  // Lets functions of faulty modules fail (faulty_token.cc).
  static void fail(const char* faults) { ::setenv("FAULTY_TOKEN", faults, 1); }

  SoftTokens& tokens_ = SoftTokens::instance();
  DataKey data_ = DataKey::generate();
};

TEST(Pkcs11Modules, AreNotForEverybodyToWrite) {
  const TempFolder folder;
  const std::filesystem::path module = folder.path() / "module.so";
  write_file_durably(module, "no library");
  std::filesystem::permissions(module, std::filesystem::perms::others_write,
                               std::filesystem::perm_options::add);
  const std::string uri = "pkcs11:token=t;object=o?module-path=" + module.string();
  EXPECT_THAT(message_of<PolicyError>([&] { (void)open_token_key(uri); }),
              HasSubstr("every user of this host, who could run code here and read keys"));
  std::filesystem::permissions(module, std::filesystem::perms::others_write,
                               std::filesystem::perm_options::remove);
  EXPECT_THROW((void)open_token_key(uri), ConfigError);
}

TEST_F(TokenKeys, WrapAndUnwrap) {
  const auto wrapping = open_token_key(tokens_.uri(key()));
  const Recipient recipient = wrapping->wrap(data_);
  const std::string serial = tokens_.session("first").token().serial;
  EXPECT_EQ(recipient.kind, "pkcs11");
  EXPECT_EQ(recipient.name, "key");
  EXPECT_EQ(recipient.key, sha256_hex("trireme token key\n" + serial + "\nid:0102").substr(0, 32));
  EXPECT_EQ(recipient.parameters->dump(), R"({"mechanism":"aes-gcm","object":"id:0102"})");
  EXPECT_EQ(recipient.wrapped.size(), 60U);
  const std::optional<DataKey> unwrapped = wrapping->unwrap(recipient, data_.id());
  ASSERT_TRUE(unwrapped.has_value());
  EXPECT_EQ(unwrapped->bytes().view(), data_.bytes().view());
  EXPECT_NE(wrapping->wrap(data_).wrapped, recipient.wrapped);  // another nonce
  EXPECT_EQ(wrapping->title(), "key 'key' in the token 'first' (" + recipient.key + ")");
}

TEST_F(TokenKeys, WorkInKeyRings) {
  const KeyRing ring({tokens_.uri(key()), tokens_.uri("token=first;id=%01%02")});
  const WrappedKeys wrapped = ring.wrap(data_, "contents");
  EXPECT_EQ(
      KeyRing({tokens_.uri(key())}).unwrap(parse_wrapped_keys(to_text(wrapped), "it"), "it").id(),
      data_.id());
}

TEST_F(TokenKeys, ChangesAreFound) {
  const auto wrapping = open_token_key(tokens_.uri(key()));
  const Recipient recipient = wrapping->wrap(data_);
  for (std::size_t i = 0; i < recipient.wrapped.size(); ++i) {
    Recipient changed = recipient;
    changed.wrapped[i] ^= 0x10;
    EXPECT_THROW((void)wrapping->unwrap(changed, data_.id()), DataError) << i;
  }
  Recipient changed = recipient;
  changed.wrapped.pop_back();
  EXPECT_THAT(message_of<DataError>([&] { (void)wrapping->unwrap(changed, data_.id()); }),
              HasSubstr("it was changed"));
  EXPECT_THROW((void)wrapping->unwrap(recipient, DataKey::generate().id()), DataError);
  changed = recipient;
  (*changed.parameters)["mechanism"] = "rot13";
  EXPECT_THAT(message_of<DataError>([&] { (void)wrapping->unwrap(changed, data_.id()); }),
              HasSubstr("a mechanism that this version does not know: rot13"));
  changed.parameters = JsonValue();
  EXPECT_THROW((void)wrapping->unwrap(changed, data_.id()), DataError);
  changed = recipient;
  changed.kind = "file";
  EXPECT_EQ(wrapping->unwrap(changed, data_.id()), std::nullopt);
  changed = recipient;
  changed.key = "0123";
  (*changed.parameters)["object"] = "id:99";
  EXPECT_EQ(wrapping->unwrap(changed, data_.id()), std::nullopt);
  EXPECT_TRUE(wrapping->unwrap(recipient, data_.id()).has_value());  // of use after refusals
}

std::string bytes_from(unsigned char first) {
  std::string bytes;
  for (unsigned char i = 0; i < 32; ++i) {
    bytes += static_cast<char>(first + i);
  }
  return bytes;
}

// The value is that of Python's cryptography package, by tests/keys/golden.py.
TEST_F(TokenKeys, CopiesUnwrapWhatAnotherImplementationWrapped) {
  const DataKey expected(Secret(std::string_view(bytes_from(0))));
  const Recipient recipient = {
      std::string(kPkcs11Kind), "of the first token", "",
      from_base64(
          "ICEiIyQlJicoKSorm7/Zh1I9tu8ZaAC2UgmaXCy2tuz8hHlTViCoiFBZaYDQ1Bgl6K7Xnw+/189n9/AS"),
      JsonValue(nlohmann::json{{"mechanism", "aes-gcm"}, {"object", "label:copied"}})};
  tokens_.import_key("second", "copied", "", bytes_from(0x80));
  testing::internal::CaptureStderr();
  const auto wrapping = open_token_key(tokens_.uri("token=second;object=copied"));
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("can be read out of the token: whoever has the PIN can copy it"));
  const std::optional<DataKey> unwrapped = wrapping->unwrap(recipient, expected.id());
  ASSERT_TRUE(unwrapped.has_value());
  EXPECT_EQ(unwrapped->bytes().view(), expected.bytes().view());
  Recipient other = recipient;  // a key of the same label in another token
  other.wrapped.back() ^= 1;
  EXPECT_EQ(wrapping->unwrap(other, expected.id()), std::nullopt);
}

TEST_F(TokenKeys, AreNotHandedOut) {
  testing::internal::CaptureStderr();
  (void)open_token_key(tokens_.uri(key()));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  const Pkcs11Session session = tokens_.session("first");
  const auto keys = session.find_keys(parse_pkcs11_uri(tokens_.uri(key())));
  ASSERT_EQ(keys.size(), 1U);
  char value[64];
  CK_ATTRIBUTE attribute{CKA_VALUE, value, sizeof value};
  EXPECT_EQ(session.calls().C_GetAttributeValue(session.handle(), keys[0], &attribute, 1),
            CK_RV{CKR_ATTRIBUTE_SENSITIVE});
}

TEST_F(TokenKeys, AreMadeOnce) {
  const auto made = create_token_key(tokens_.uri("token=second;object=new"));
  EXPECT_EQ(made->unwrap(made->wrap(data_), data_.id())->id(), data_.id());
  EXPECT_THAT(made->wrap(data_).parameters->dump(),
              testing::ContainsRegex(R"("object":"id:[0-9a-f]{16}")"));
  EXPECT_THAT(message_of<PolicyError>(
                  [&] { (void)create_token_key(tokens_.uri("token=second;object=new")); }),
              HasSubstr("token 'second': there is a key 'new' already"));
  EXPECT_THROW((void)create_token_key(tokens_.uri("token=second;id=1")), ConfigError);
  fail("C_GenerateKey=0xe2");
  EXPECT_THAT(message_of<PolicyError>(
                  [&] { (void)create_token_key(tokens_.faulty_uri("token=second;object=newer")); }),
              HasSubstr("cannot make the key 'newer' (CKR_TOKEN_WRITE_PROTECTED)"));
}

TEST_F(TokenKeys, NeedAModule) {
  const auto open = [&](const std::string& module) {
    return message_of<ConfigError>([&] { (void)open_token_key(tokens_.uri(key(), module)); });
  };
  EXPECT_THAT(open("/nowhere/module.so"),
              HasSubstr("cannot load the PKCS#11 module /nowhere/module.so: "));
  EXPECT_THAT(open(tokens_.path("pin")), HasSubstr("name the file of the token's vendor as"));
  EXPECT_THAT(open("/lib/x86_64-linux-gnu/libm.so.6"),
              HasSubstr("is not a PKCS#11 module: it has no C_GetFunctionList"));
  fail("C_Initialize=0x5");
  EXPECT_THAT(message_of<DeviceError>([&] { (void)open_token_key(tokens_.faulty_uri(key())); }),
              HasSubstr("does not start: check its own configuration (CKR_GENERAL_ERROR)"));
  fail("C_Initialize=0xa*1");  // CKR_CANT_LOCK: the module has no locks
  EXPECT_NO_THROW((void)open_token_key(tokens_.faulty_uri(key())));
}

TEST_F(TokenKeys, NeedTheirToken) {
  EXPECT_THAT(
      message_of<NotFound>([&] { (void)open_token_key(tokens_.uri("token=third;object=key")); }),
      testing::AllOf(HasSubstr("the token 'third' is absent; /usr/lib/softhsm/"),
                     HasSubstr("'first' (serial "), HasSubstr("'second' (serial ")));
  EXPECT_THAT(message_of<ConfigError>([&] {
                (void)Pkcs11Module(FAULTY_TOKEN_PATH).token({.manufacturer = "SoftHSM project"});
              }),
              HasSubstr("add serial= to the URI of the key"));
  fail("absent");
  EXPECT_THAT(message_of<NotFound>([&] { (void)open_token_key(tokens_.faulty_uri(key())); }),
              HasSubstr(" has no token: attach it"));
}

TEST_F(TokenKeys, NeedAPin) {
  const auto refusal = [&](const char* faults) {
    fail(faults);
    return message_of<PolicyError>([&] { (void)open_token_key(tokens_.faulty_uri(key())); });
  };
  EXPECT_THAT(refusal("flags-0x8"), HasSubstr("the token has no user PIN yet"));
  EXPECT_THAT(refusal("flags+0x40000"), HasSubstr("(CKR_PIN_LOCKED): too many wrong PINs"));
  EXPECT_THAT(refusal("flags+0x20000"), HasSubstr("did not try the PIN, since one more wrong one"));
  EXPECT_THAT(refusal("C_Login=0xa4"), HasSubstr("token 'first': cannot log in (CKR_PIN_LOCKED)"));
  EXPECT_THAT(refusal("C_Login=0xa3"), HasSubstr("(CKR_PIN_EXPIRED): the PIN has expired"));
  EXPECT_THAT(refusal("C_Login=0x102"), HasSubstr("the token has no user PIN yet"));
  EXPECT_THAT(refusal("C_OpenSession=0xb1"), HasSubstr("too many sessions"));
  fail("C_Login=0x80000123");
  EXPECT_THAT(message_of<DeviceError>([&] { (void)open_token_key(tokens_.faulty_uri(key())); }),
              HasSubstr("cannot log in (error 0x80000123): the token failed: see its log"));
  fail("C_Login=0x2");
  EXPECT_THROW((void)open_token_key(tokens_.faulty_uri(key())), ResourceError);
}

TEST_F(TokenKeys, ReadThePinFromAFile) {
  const std::string start = "pkcs11:" + key() + "?module-path=/usr/lib/softhsm/libsofthsm2.so";
  const auto wrong = tokens_.file("wrong", "0000\n");
  EXPECT_THAT(message_of<PolicyError>(
                  [&] { (void)open_token_key(start + "&pin-source=file:" + wrong.string()); }),
              HasSubstr("cannot log in (CKR_PIN_INCORRECT): the PIN is wrong; each further try"));
  EXPECT_THROW((void)open_token_key(start + "&pin-source=/nowhere"), NotFound);
  ::chmod(wrong.c_str(), 0644);
  EXPECT_THROW((void)open_token_key(start + "&pin-source=" + wrong.string()), PolicyError);
}

TEST_F(TokenKeys, AskForThePinWithoutAFile) {
  const std::string uri = "pkcs11:" + key() + "?module-path=/usr/lib/softhsm/libsofthsm2.so";
  const auto use = [&] {
    const DataKey data = DataKey::generate();  // a child process does not inherit data_
    const KeyRing ring({uri});
    return ring.unwrap(ring.wrap(data, "contents"), "it").id() == data.id() ? 0 : 2;
  };
  const ShownText shown = on_terminal({"5678\n"}, use);
  EXPECT_EQ(shown.text, "PIN of the token 'first': \r\n");
  EXPECT_EQ(shown.exit_code, 0);
  EXPECT_THAT(on_terminal({"0000\n"}, use).text, HasSubstr("the PIN is wrong"));
  EXPECT_THAT(without_terminal(use).text,
              HasSubstr("there is no terminal to ask on: write the PIN to a file"));
}

TEST_F(TokenKeys, ATokenWithAPinPadAsksItself) {
  fail("flags+0x100 C_Login=0xa0");  // SoftHSM would refuse to log in without a PIN
  EXPECT_THAT(message_of<PolicyError>([&] {
                (void)open_token_key("pkcs11:" + key() + "?module-path=" FAULTY_TOKEN_PATH);
              }),
              HasSubstr("the PIN is wrong"));  // and not: no terminal
}

TEST_F(TokenKeys, MustFit) {
  EXPECT_THAT(
      message_of<NotFound>([&] { (void)open_token_key(tokens_.uri("token=first;object=none")); }),
      HasSubstr("token 'first': the key none is absent"));
  EXPECT_THAT(
      message_of<NotFound>([&] { (void)open_token_key(tokens_.uri("token=first;id=%aa")); }),
      HasSubstr("the key with id aa is absent"));
  tokens_.import_key("second", "double", "1", bytes_from(1));
  tokens_.import_key("second", "double", "2", bytes_from(2));
  EXPECT_THAT(message_of<ConfigError>(
                  [&] { (void)open_token_key(tokens_.uri("token=second;object=double")); }),
              HasSubstr("is there several times: add id= to the URI"));
  tokens_.import_key("second", "short", "3", std::string(16, 'k'));
  EXPECT_THAT(message_of<PolicyError>(
                  [&] { (void)open_token_key(tokens_.uri("token=second;object=short")); }),
              HasSubstr("is no AES-256 key that may encrypt and decrypt"));
  tokens_.import_key("second", "decrypts", "4", bytes_from(4), false);
  EXPECT_THROW((void)open_token_key(tokens_.uri("token=second;object=decrypts")), PolicyError);
  fail("C_GetMechanismInfo=0x70");
  EXPECT_THAT(message_of<PolicyError>([&] { (void)open_token_key(tokens_.faulty_uri(key())); }),
              HasSubstr("cannot encrypt and decrypt with CKM_AES_GCM (CKR_MECHANISM_INVALID)"));
  fail("C_FindObjectsInit=0x30");
  EXPECT_THROW((void)open_token_key(tokens_.faulty_uri(key())), DeviceError);
}

TEST_F(TokenKeys, LogInOnceMoreAfterAReset) {
  const auto wrapping = open_token_key(tokens_.faulty_uri(key()));
  const Recipient recipient = wrapping->wrap(data_);
  for (const char* faults :
       {"C_EncryptInit=0xb3*1 C_DecryptInit=0xb3*1", "C_Encrypt=0x32*1 C_Decrypt=0x32*1",
        "C_EncryptInit=0x101*1 C_DecryptInit=0x190*1"}) {
    fail(faults);
    EXPECT_EQ(wrapping->wrap(data_).key, recipient.key) << faults;
    EXPECT_EQ(wrapping->unwrap(recipient, data_.id())->id(), data_.id()) << faults;
  }
  const Pkcs11Session session = tokens_.session("first");
  session.calls().C_CloseAllSessions(session.token().slot);  // as a token does that is taken out
  EXPECT_EQ(wrapping->unwrap(recipient, data_.id())->id(), data_.id());
}

TEST_F(TokenKeys, DoNotTryARefusedPinAgain) {
  const auto wrapping = open_token_key(tokens_.faulty_uri(key()));
  fail("C_EncryptInit=0xb3 C_Login=0xa0*1");  // the PIN was changed, and the token reset
  EXPECT_THAT(message_of<PolicyError>([&] { (void)wrapping->wrap(data_); }),
              HasSubstr("(CKR_PIN_INCORRECT): the PIN is wrong"));
  EXPECT_THAT(message_of<PolicyError>([&] { (void)wrapping->wrap(data_); }),
              HasSubstr("the PIN was refused before and is not tried again"));
}

TEST_F(TokenKeys, SayThatTheTokenHasGoneAway) {
  const auto wrapping = open_token_key(tokens_.faulty_uri(key()));
  const Recipient recipient = wrapping->wrap(data_);
  fail("C_EncryptInit=0x32");
  EXPECT_THAT(
      message_of<DeviceError>([&] { (void)wrapping->wrap(data_); }),
      HasSubstr("cannot encrypt (CKR_DEVICE_REMOVED): the token or its connection has gone"));
  fail("C_DecryptInit=0xb3 absent");
  EXPECT_THAT(message_of<DeviceError>([&] { (void)wrapping->unwrap(recipient, data_.id()); }),
              HasSubstr(") has gone away: the token 'first' is absent"));
  fail("C_Decrypt=0x30");
  EXPECT_THROW((void)wrapping->unwrap(recipient, data_.id()), DeviceError);
  fail("");
  EXPECT_EQ(wrapping->unwrap(recipient, data_.id())->id(), data_.id());
}

}  // namespace
}  // namespace trireme
