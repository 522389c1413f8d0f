// Tests the encrypted connections of a launch: two ends, or one end and a hostile other one.
#include <thread>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include "slurm/wire/secret.h"
#include "slurm/wire/tls_stream.h"
#include "src/base/error.h"
#include "tests/slurm/wire/tls_ends.h"

namespace trireme {
namespace {

using testing::HasSubstr;

LaunchSecret plain(const std::string& secret) { return {secret, {.is_on = false}}; }

TEST(Tls, NobodyBetweenTheEndsSeesTheMessages) {
  const std::string secret = fresh_secret();
  for (const bool is_on : {true, false}) {
    EchoGate gate({secret, {.is_on = is_on}});
    std::string seen;
    {
      Relay relay(gate.port(), [&](std::string& bytes, bool) { seen += bytes; });
      EXPECT_EQ(echo(relay.port(), {secret, {.is_on = is_on}}, kCanary), kCanary);
    }
    // In plain, the relay sees all of it, so it would see it in TLS, too.
    EXPECT_EQ(seen.find(kCanary) == std::string::npos, is_on);
    EXPECT_EQ(seen.find("\"hello\"") == std::string::npos, is_on);
    EXPECT_EQ(seen.find(secret), std::string::npos);
  }
}

TEST(Tls, LargeMessagesArrive) {
  const std::string secret = fresh_secret();
  EchoGate gate(secret);
  const std::string large(3 << 20, 'x');
  EXPECT_EQ(echo(gate.port(), secret, large), large);
}

TEST(Tls, AnotherKeyIsRefusedOnBothSides) {
  EchoGate gate(fresh_secret());
  testing::internal::CaptureStderr();
  ExitCode code{};
  EXPECT_THAT(echo(gate.port(), fresh_secret(), "x", &code), HasSubstr("does not know the secret"));
  EXPECT_EQ(code, ExitCode::refused);
  (void)gate.trouble();
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("does not know the secret"));
  EXPECT_EQ(gate.callers(), 0);
}

TEST(Tls, APlainCallerIsRefused) {
  const std::string secret = fresh_secret();
  EchoGate gate(secret);
  testing::internal::CaptureStderr();
  // It waits for the listener, which waits for its handshake.
  Refusal refusal;
  EXPECT_FALSE(call({kHere}, gate.port(), plain(secret), {.role = "agent"}, 0.3, &refusal));
  EXPECT_THAT(refusal.why, HasSubstr("said nothing for 0.3 s: launch.tls must be the same"));
  EXPECT_EQ(refusal.code, ExitCode::hang);
  auto loud = connect_to(kHere, gate.port(), kPatience);
  loud->send(to_json(Hello{.role = "agent"}));
  EXPECT_FALSE(loud->receive_one(kPatience));
  EXPECT_TRUE(loud->closed());
  (void)gate.trouble();
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("does not speak TLS"));
  EXPECT_EQ(gate.callers(), 0);
}

TEST(Tls, APlainListenerIsRefused) {
  const std::string secret = fresh_secret();
  EchoGate gate(plain(secret));
  testing::internal::CaptureStderr();
  ExitCode code{};
  EXPECT_THAT(echo(gate.port(), secret, kCanary, &code), HasSubstr("does not speak TLS"));
  EXPECT_EQ(code, ExitCode::refused);
  (void)gate.trouble();
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("received TLS where plain messages are expected"));
  EXPECT_EQ(gate.callers(), 0);
}

// Makes a handshake of at most TLS 1.2 and returns whether it succeeds.
bool old_handshake(int fd, bool is_listener) {
  ::fcntl(fd, F_SETFL, 0);
  SSL_CTX* const context = SSL_CTX_new(TLS_method());
  SSL_CTX_set_max_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_security_level(context, 0);
  const auto offer = [](SSL*, const char*, char* identity, unsigned, unsigned char* key,
                        unsigned) -> unsigned {
    identity[0] = 'x', identity[1] = '\0', key[0] = 1;
    return 1;
  };
  SSL_CTX_set_psk_client_callback(context, offer);
  SSL* const ssl = SSL_new(context);
  SSL_set_fd(ssl, fd);
  const int done = is_listener ? SSL_accept(ssl) : SSL_connect(ssl);
  SSL_free(ssl);
  SSL_CTX_free(context);
  return done == 1;
}

TEST(Tls, NothingOlderIsSpoken) {
  const std::string secret = fresh_secret();
  EchoGate gate(secret);
  testing::internal::CaptureStderr();
  auto old_caller = connect_to(kHere, gate.port(), kPatience);
  EXPECT_FALSE(old_handshake(old_caller->fd(), false));
  Listener listener(kHere);
  std::thread old_listener([&] {
    const Connection caller = next_caller(listener);
    EXPECT_FALSE(old_handshake(caller.fd(), true));
  });
  ExitCode code{};
  EXPECT_THAT(echo(listener.port(), secret, kCanary, &code), HasSubstr("offers no TLS 1.3"));
  EXPECT_EQ(code, ExitCode::refused);
  old_listener.join();
  (void)gate.trouble();
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("offers no TLS 1.3"));
}

TEST(Tls, AHandshakeThatStopsHasADeadline) {
  Listener silent(kHere);
  Refusal refusal;
  EXPECT_FALSE(call({kHere}, silent.port(), fresh_secret(), {.role = "agent"}, 0.3, &refusal));
  EXPECT_THAT(refusal.why, HasSubstr("no answer to the TLS handshake within 0.3 s"));
  EXPECT_EQ(refusal.code, ExitCode::hang);
}

TEST(Tls, AChangedRecordEndsTheConnection) {
  const std::string secret = fresh_secret();
  EchoGate gate(secret);
  std::size_t records = 0;
  Relay relay(gate.port(), [&](std::string& bytes, bool is_from_caller) {
    records += is_from_caller ? 1 : 0;
    if (is_from_caller && bytes.size() > 5000) {
      bytes[2000] ^= 1;  // in the message that follows the handshake
    }
  });
  EXPECT_THAT(echo(relay.port(), secret, std::string(10'000, 'x')), HasSubstr("refused"));
  const Refusal trouble = gate.trouble();
  EXPECT_THAT(trouble.why, HasSubstr("TLS data was changed or cut on its way"));
  EXPECT_EQ(trouble.code, ExitCode::bad_data);
}

TEST(Tls, ACutRecordIsNoMessage) {
  const std::string secret = fresh_secret();
  EchoGate gate(secret);
  Relay relay(gate.port(), [&](std::string& bytes, bool is_from_caller) {
    if (is_from_caller && bytes.size() > 5000) {
      bytes.clear();  // and the relay closes both connections
    }
  });
  EXPECT_THAT(echo(relay.port(), secret, std::string(10'000, 'x')), HasSubstr("refused"));
  EXPECT_EQ(gate.callers(), 1);
}

}  // namespace
}  // namespace trireme
