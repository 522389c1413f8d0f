#include "src/keys/token_signer.h"

#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/keys/token_key.h"
#include "tests/keys/soft_token.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {

using testing::HasSubstr;

class TokenSigners : public testing::Test {
 protected:
  void SetUp() override {
    if (!tokens_.exist()) {
      GTEST_SKIP() << "SoftHSM is not installed (Debian: softhsm2)";
    }
  }
  void TearDown() override { ::unsetenv("FAULTY_TOKEN"); }

  // Makes the key "signer" in the token "first", once in this process.
  const std::string& key() {
    static const std::string rest = [&] {
      (void)create_token_signer(tokens_.uri("token=first;object=signer"));
      return "token=first;object=signer";
    }();
    return rest;
  }

  SoftTokens& tokens_ = SoftTokens::instance();
};

// tests/evidence/keys_test.cc checks the signatures.
TEST_F(TokenSigners, SignWithAPointThatStaysTheSame) {
  const auto signer = open_token_signer(tokens_.uri(key()));
  EXPECT_EQ(signer->point().size(), 65U);
  EXPECT_EQ(signer->point()[0], 4);
  EXPECT_EQ(open_token_signer(tokens_.uri(key()))->point(), signer->point());
  EXPECT_EQ(signer->sign("message").size(), 64U);
  EXPECT_NE(signer->sign("message"), signer->sign("message"));  // each has a random number in it
  EXPECT_THAT(signer->title(), HasSubstr("signing key 'signer' in the token 'first'"));
}

TEST_F(TokenSigners, SignInSeveralThreads) {
  const auto signer = open_token_signer(tokens_.uri(key()));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int each = 0; each < 5; ++each) {
        EXPECT_EQ(signer->sign("message").size(), 64U);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

TEST_F(TokenSigners, AreNotHandedOut) {
  const Pkcs11Session session = tokens_.session("first");
  const Pkcs11Uri uri = parse_pkcs11_uri(tokens_.uri(key()));
  const auto keys = session.find_keys(uri, CKO_PRIVATE_KEY);
  ASSERT_EQ(keys.size(), 1U);
  EXPECT_EQ(session.flag_of(keys[0], CKA_EXTRACTABLE), false);
  EXPECT_EQ(session.flag_of(keys[0], CKA_SENSITIVE), true);
  EXPECT_EQ(session.text_of(keys[0], CKA_VALUE), "");
}

TEST_F(TokenSigners, AreMadeOnce) {
  EXPECT_THAT(message_of<PolicyError>([&] { (void)create_token_signer(tokens_.uri(key())); }),
              HasSubstr("there is a key 'signer' already"));
  EXPECT_THAT(message_of<ConfigError>(
                  [&] { (void)create_token_signer(tokens_.uri("token=first;id=%07")); }),
              HasSubstr("needs object=NAME"));
}

TEST_F(TokenSigners, MustFit) {
  const auto refusal = [&](auto error, const std::string& rest) {
    return message_of<decltype(error)>([&] { (void)open_token_signer(tokens_.uri(rest)); });
  };
  EXPECT_THAT(refusal(NotFound(""), "token=first;object=nobody"),
              HasSubstr("the private key nobody is absent"));
  EXPECT_THAT(refusal(NotFound(""), "token=nowhere;object=signer"), HasSubstr("nowhere"));
  (void)create_token_key(tokens_.uri("token=first;object=cipher"));
  EXPECT_THAT(refusal(NotFound(""), "token=first;object=cipher"), HasSubstr("is absent"));
}

TEST_F(TokenSigners, LogInOnceMoreAfterAReset) {
  const auto signer = open_token_signer(tokens_.faulty_uri(key()));
  ::setenv("FAULTY_TOKEN", "C_SignInit=0xb3*1", 1);  // CKR_SESSION_HANDLE_INVALID
  EXPECT_EQ(signer->sign("message").size(), 64U);
}

TEST_F(TokenSigners, SayThatTheTokenHasGoneAway) {
  const auto signer = open_token_signer(tokens_.faulty_uri(key()));
  ::setenv("FAULTY_TOKEN", "C_SignInit=0x32 absent", 1);  // CKR_DEVICE_REMOVED
  EXPECT_THAT(message_of<DeviceError>([&] { (void)signer->sign("message"); }),
              HasSubstr("has gone away"));
  ::unsetenv("FAULTY_TOKEN");
  EXPECT_EQ(signer->sign("message").size(), 64U);  // it was attached again
}

TEST_F(TokenSigners, NeedATokenThatSigns) {
  ::setenv("FAULTY_TOKEN", "C_GetMechanismInfo=0x70", 1);  // CKR_MECHANISM_INVALID
  EXPECT_THAT(message_of<PolicyError>([&] { (void)open_token_signer(tokens_.faulty_uri(key())); }),
              HasSubstr("cannot sign with CKM_ECDSA"));
}

}  // namespace
}  // namespace trireme
