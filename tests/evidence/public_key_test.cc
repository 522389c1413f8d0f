#include "src/evidence/public_key.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/evidence/keys.h"
#include "src/keys/token_signer.h"
#include "tests/keys/soft_token.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {

using testing::HasSubstr;

std::string from_digits(const std::string& digits) {
  std::string bytes;
  for (std::size_t at = 0; at < digits.size(); at += 2) {
    bytes += static_cast<char>(std::stoi(digits.substr(at, 2), nullptr, 16));
  }
  return bytes;
}

// RFC 6979, appendix A.2.5, for SHA-256.
const std::string kX = "60fed4ba255a9d31c961eb74c6356d68c049b8923b61fa6ce669622e60f29fb6";
const std::string kY = "7903fe1008b8bc99a41ae9e95628bc64f2f1b20c2d7e9f5177a3c294d4462299";
const std::string kSample =
    "efd48b2aacb6a8fd1140dd9cd45e81d69d2c877b56aaf991c34d0ea84eaf3716"
    "f7cb1c942d657c41d436c7a1b6e29f65f3e900dbb9aff4064dc4ab2f843acda8";
const std::string kTest =
    "f1abb023518351cd71d881567b1ea663ed3efcf6c5132b354f28d3b0b7d38367"
    "019f4113742a2b14bd25926b49c649155f267e60d3814b4c0cc84250e46f0083";
const std::string kPrefix = "3059301306072a8648ce3d020106082a8648ce3d030107034200";

TEST(PublicKeys, CheckTheSignaturesOfTheStandard) {
  const auto key = PublicKey::of_point(from_digits("04" + kX + kY));
  ASSERT_TRUE(key);
  EXPECT_EQ(key->kind(), PublicKey::Kind::ecdsa_p256);
  EXPECT_FALSE(key->is_weak());
  EXPECT_TRUE(key->verifies("sample", ecdsa_signature(from_digits(kSample))));
  EXPECT_TRUE(key->verifies("test", ecdsa_signature(from_digits(kTest))));
  EXPECT_FALSE(key->verifies("test", ecdsa_signature(from_digits(kSample))));
  const std::string good = ecdsa_signature(from_digits(kSample));
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    EXPECT_FALSE(key->verifies("sample", bad)) << at;
    EXPECT_FALSE(key->verifies("sample", good.substr(0, at))) << at;
  }
  EXPECT_FALSE(key->verifies("sample", good + "x"));
  EXPECT_FALSE(key->verifies("sample", from_digits(kSample)));  // not in DER
  // Zeros would be a signature of everything for a careless checker.
  EXPECT_FALSE(key->verifies("sample", from_digits("3006020100020100")));
  EXPECT_FALSE(key->verifies("sample", ecdsa_signature(std::string(64, '\0'))));
}

TEST(PublicKeys, AreTheTwoKindsInTheirOnlyForm) {
  const std::string der = from_digits(kPrefix + "04" + kX + kY);
  const auto key = PublicKey::of_der(der);
  ASSERT_TRUE(key);
  std::string digits = key->to_pem();
  EXPECT_TRUE(digits.starts_with("-----BEGIN PUBLIC KEY-----\n"));
  EXPECT_EQ(digits.find('\n', 27), 27U + 64);  // as openssl breaks lines
  EXPECT_EQ(parse_trusted_keys(digits, "trust.pem")[0].key.id(), key->id());
  for (std::size_t bytes = 0; bytes < der.size(); ++bytes) {
    EXPECT_FALSE(PublicKey::of_der(der.substr(0, bytes))) << bytes;
  }
  EXPECT_FALSE(PublicKey::of_der(der + "x"));
  for (std::size_t at = 0; at < der.size(); ++at) {  // another prefix, or beside the curve
    std::string bad = der;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    EXPECT_FALSE(PublicKey::of_der(bad)) << at;
  }
  const std::string zeros(64, '0');
  for (const std::string& point : {std::string("00"), "02" + kX, "03" + kX, "06" + kX + kY,
                                   "04" + zeros + zeros, "04" + kY + kX,
                                   // X and Y from the field's prime on.
                                   "04" + std::string(128, 'f')}) {
    EXPECT_FALSE(PublicKey::of_point(from_digits(point))) << point;
  }
}

TEST(PublicKeys, KnowTheFormOfSignatures) {
  EXPECT_TRUE(has_signature_form(std::string(64, 'x')));
  const std::string good = ecdsa_signature(from_digits(kSample));
  EXPECT_TRUE(has_signature_form(good));
  for (const std::string& bad :
       {std::string(), std::string("0"), std::string(63, 'x'), std::string(65, 'x'),
        good.substr(0, good.size() - 1), good + "x", std::string(kMostSignatureBytes + 1, 'x')}) {
    EXPECT_FALSE(has_signature_form(bad)) << bad.size();
  }
}

class TokenKeyPairs : public testing::Test {
 protected:
  void SetUp() override {
    if (!tokens_.exist()) {
      GTEST_SKIP() << "SoftHSM is not installed (Debian: softhsm2)";
    }
  }
  std::string uri(const std::string& name) const {
    return tokens_.uri("token=first;object=" + name);
  }
  static void create(const std::string& name) { (void)create_token_signer(name); }

  SoftTokens& tokens_ = SoftTokens::instance();
};

TEST_F(TokenKeyPairs, Sign) {
  create(uri("evidence"));
  const SigningKey key = SigningKey::load(uri("evidence"));
  EXPECT_TRUE(names_token(uri("evidence")));
  EXPECT_EQ(key.public_key().kind(), PublicKey::Kind::ecdsa_p256);
  for (int i = 0; i < 20; ++i) {  // r and s differ in length now and then
    const std::string signature = key.sign("message");
    EXPECT_TRUE(key.public_key().verifies("message", signature));
    EXPECT_TRUE(has_signature_form(signature));
  }
  EXPECT_FALSE(key.public_key().verifies("another", key.sign("message")));
  SigningKey moved = SigningKey::generate();
  moved = SigningKey::load(uri("evidence"));
  EXPECT_EQ(moved.public_key().id(), key.public_key().id());
}

TEST_F(TokenKeyPairs, MustBelongToTheirPublicKeys) {
  create(uri("honest"));
  create(uri("swapped"));
  const Pkcs11Session session = tokens_.session("first");
  const auto found = [&](const std::string& name, CK_OBJECT_CLASS kind) {
    return session.find_keys(parse_pkcs11_uri(uri(name)), kind).at(0);
  };
  std::string id = session.text_of(found("swapped", CKO_PRIVATE_KEY), CKA_ID);
  session.check_result(
      session.calls().C_DestroyObject(session.handle(), found("swapped", CKO_PUBLIC_KEY)),
      "cannot destroy");
  EXPECT_THAT(message_of<NotFound>([&] { (void)SigningKey::load(uri("swapped")); }),
              HasSubstr("the public key of token 'first': the private key swapped is absent"));
  CK_ATTRIBUTE other{CKA_ID, id.data(), id.size()};
  session.check_result(session.calls().C_SetAttributeValue(
                           session.handle(), found("honest", CKO_PUBLIC_KEY), &other, 1),
                       "cannot change");
  EXPECT_THAT(message_of<PolicyError>([&] { (void)SigningKey::load(uri("swapped")); }),
              HasSubstr("does not belong to the private one"));
}

}  // namespace
}  // namespace trireme
