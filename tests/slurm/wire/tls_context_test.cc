// Tests the certificates of launch.tls: those that both sides accept, and all others.
#include "slurm/wire/tls_context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include "slurm/wire/secret.h"
#include "src/base/error.h"
#include "src/base/private_file.h"
#include "tests/slurm/wire/certificates.h"
#include "tests/slurm/wire/tls_ends.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using testing::HasSubstr;

class Certificates : public testing::Test {
 protected:
  static constexpr long kDay = 86'400;
  LaunchSecret with(const TestCertificate& own, const TestCertificate& authority) const {
    return {secret_, {.certificate = own.certificate, .key = own.key, .ca = authority.certificate}};
  }
  // Lets a process with an invalid certificate begin, by an authority of its own choice.
  std::string call_with(const TestCertificate& own, const TestCertificate& trusted) {
    EchoGate gate(with(node_, authority_));
    testing::internal::CaptureStderr();
    const std::string answer = echo(gate.port(), with(own, trusted), kCanary, &code_);
    (void)gate.trouble();
    said_ = testing::internal::GetCapturedStderr();
    return answer;
  }

  TempFolder folder_;
  const std::string secret_ = fresh_secret();
  const TestCertificate authority_ = make_certificate(folder_.path(), "authority", kDay);
  const TestCertificate stranger_ = make_certificate(folder_.path(), "stranger", kDay);
  const TestCertificate node_ = make_certificate(folder_.path(), "node", kDay, &authority_);
  ExitCode code_{};
  std::string said_;
};

TEST_F(Certificates, OfTheSiteAuthenticateBothSides) {
  EXPECT_EQ(call_with(make_certificate(folder_.path(), "other", kDay, &authority_), authority_),
            kCanary);
}

TEST_F(Certificates, DoNotReplaceTheSecretOfTheLaunch) {
  EchoGate gate(with(node_, authority_));
  LaunchSecret other = with(node_, authority_);
  other.text = fresh_secret();
  testing::internal::CaptureStderr();
  EXPECT_THAT(echo(gate.port(), other, kCanary), HasSubstr("refused"));
  (void)gate.trouble();
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("does not know the secret"));
}

TEST_F(Certificates, OfAnotherAuthorityAreRefused) {
  // It accepts the listener, and shows a certificate that its own authority has issued.
  const TestCertificate own = make_certificate(folder_.path(), "foreign", kDay, &stranger_);
  const std::filesystem::path both = folder_.path() / "both.pem";
  write_private_file(both, read_file(authority_.certificate) + read_file(stranger_.certificate));
  EXPECT_THAT(call_with(own, {both, {}}), HasSubstr("refuses the certificate"));
  EXPECT_EQ(code_, ExitCode::refused);
  EXPECT_THAT(said_, HasSubstr("the certificate of the other side is not valid"));
}

TEST_F(Certificates, OfAnUnknownListenerAreRefused) {
  const TestCertificate own = make_certificate(folder_.path(), "foreign", kDay, &stranger_);
  EXPECT_THAT(call_with(own, stranger_),
              HasSubstr("the certificate of the other side is not valid"));
  EXPECT_EQ(code_, ExitCode::refused);
}

TEST_F(Certificates, ThatHaveExpiredEndTheStart) {
  const TestCertificate late = make_certificate(folder_.path(), "late", -60, &authority_);
  try {
    (void)TlsContext(with(late, authority_));
    ADD_FAILURE() << "an expired certificate is accepted";
  } catch (const PolicyError& error) {
    EXPECT_THAT(error.what(), HasSubstr("certificate has expired: renew it"));
  }
}

TEST_F(Certificates, ThatExpireMeanwhileAreRefusedByTheOtherSide) {
  const TlsContext context(with(node_, authority_));
  const TestCertificate late = make_certificate(folder_.path(), "late", -60, &authority_);
  ASSERT_EQ(SSL_CTX_use_certificate_chain_file(context.get(), late.certificate.c_str()), 1);
  ASSERT_EQ(SSL_CTX_use_PrivateKey_file(context.get(), late.key.c_str(), SSL_FILETYPE_PEM), 1);
  EchoGate gate(with(node_, authority_));
  testing::internal::CaptureStderr();
  auto connection = connect_to(kHere, gate.port(), kPatience);
  connection->encrypt(context, TlsSide::caller);
  EXPECT_FALSE(connection->receive_one(kPatience));
  EXPECT_THAT(connection->trouble().why, HasSubstr("certificate expired"));
  (void)gate.trouble();
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("certificate has expired"));
}

TEST_F(Certificates, ACallerWithoutOneIsRefused) {
  EchoGate gate(with(node_, authority_));
  testing::internal::CaptureStderr();
  EXPECT_THAT(echo(gate.port(), secret_, kCanary, &code_), HasSubstr("refused"));
  EXPECT_EQ(code_, ExitCode::refused);
  (void)gate.trouble();
  EXPECT_EQ(gate.callers(), 0);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("refused a connection"));
}

TEST_F(Certificates, FilesThatAreNoneAreRefused) {
  const auto refusal = [&](const TestCertificate& own, const TestCertificate& authority) {
    try {
      (void)TlsContext(with(own, authority));
    } catch (const Error& error) {
      return fmt::format("{}: {}", static_cast<int>(error.exit_code()), error.what());
    }
    return std::string("accepted");
  };
  const std::filesystem::path rubbish = folder_.path() / "rubbish";
  write_private_file(rubbish, "-----BEGIN CERTIFICATE-----\nAAAA\n");
  const std::filesystem::path open_key = folder_.path() / "open.key";
  write_private_file(open_key, read_file(node_.key));
  std::filesystem::permissions(open_key, std::filesystem::perms(0644));
  EXPECT_THAT(refusal({rubbish, node_.key}, authority_), HasSubstr("2: launch.tls.certificate"));
  EXPECT_THAT(refusal(node_, {rubbish, {}}), HasSubstr("2: launch.tls.ca"));
  EXPECT_THAT(refusal({node_.certificate, stranger_.key}, authority_),
              HasSubstr("2: launch.tls.key"));
  EXPECT_THAT(refusal({node_.certificate, rubbish}, authority_), HasSubstr("2: launch.tls.key"));
  EXPECT_THAT(refusal({node_.certificate, open_key}, authority_), HasSubstr("77: "));
  EXPECT_THAT(refusal(node_, stranger_), HasSubstr("77: launch.tls.certificate"));
  EXPECT_THAT(refusal({folder_.path() / "gone", node_.key}, authority_), HasSubstr("66: "));
}

// A host of the site that is in the middle has a valid certificate, but the proof of the one end is
// not valid on the connection to the other.
TEST_F(Certificates, AProofIsOfOneConnection) {
  Listener listener(kHere);
  const LaunchSecret secret = with(node_, authority_);
  std::string refused;
  std::thread middle([&] {
    const TlsContext context(secret);
    Connection caller = next_caller(listener);
    caller.encrypt(context, TlsSide::listener);
    Doorkeeper door(secret);
    caller.send(door.challenge());
    const std::string hello = caller.receive_one(kPatience).value_or("");
    std::string welcome;
    EXPECT_NO_THROW((void)door.accept(hello, welcome, caller.binding()));
    EXPECT_THROW((void)door.accept(hello, welcome, std::string(32, 'b')), DataError);
    EXPECT_EQ(caller.binding().size(), 32U);
  });
  (void)call({kHere}, listener.port(), secret, {.role = "agent", .node = "n1"}, kPatience);
  middle.join();
}

}  // namespace
}  // namespace trireme
