#include "slurm/wire/handshake.h"

#include <thread>

#include <gtest/gtest.h>

#include "slurm/wire/secret.h"
#include "src/base/error.h"

namespace trireme {
namespace {

// Waits for a caller to connect.
std::optional<Connection> wait_for_caller(Listener& listener) {
  for (int i = 0; i < 1000; ++i) {
    if (auto connection = listener.accept()) {
      return connection;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return std::nullopt;
}

// Serves one call and returns the caller's name, or why it was refused.
std::string serve_one(Listener& listener, const std::string& secret) {
  auto connection = wait_for_caller(listener);
  const TlsContext context(secret);
  connection->encrypt(context, TlsSide::listener);
  Doorkeeper door(secret);
  connection->send(door.challenge());
  const auto text = connection->receive_one(5);
  if (!text) {
    return connection->trouble().why;
  }
  try {
    std::string welcome;
    const Hello hello = door.accept(*text, welcome, connection->binding());
    connection->send(welcome);
    connection->trust();
    return hello.role + " " + hello.node + " " + connection->receive_one(5).value_or("");
  } catch (const DataError& error) {
    return error.what();
  }
}

TEST(Handshake, WhoKnowsTheSecretIsLetIn) {
  Listener listener("127.0.0.1");
  const std::string secret = fresh_secret();
  std::string said;
  std::thread server([&] { said = serve_one(listener, secret); });
  auto connection =
      call({"127.0.0.1"}, listener.port(), secret, {.role = "agent", .node = "n1"}, 5);
  ASSERT_TRUE(connection);
  connection->send("hello there");
  server.join();
  EXPECT_EQ(said, "agent n1 hello there");
}

TEST(Handshake, WhoDoesNotIsSentAway) {
  Listener listener("127.0.0.1");
  std::string said;
  std::thread server([&] { said = serve_one(listener, fresh_secret()); });
  EXPECT_FALSE(
      call({"127.0.0.1"}, listener.port(), fresh_secret(), {.role = "agent", .node = "n1"}, 5));
  server.join();
  EXPECT_NE(said.find("secret"), std::string::npos);
}

// A listener without the secret cannot pass for the supervisor, in plain either.
TEST(Handshake, AFalseListenerIsLeft) {
  Listener listener("127.0.0.1");
  std::thread server([&] {
    auto connection = wait_for_caller(listener);
    connection->send(to_json(Challenge{fresh_secret()}));
    (void)connection->receive_one(5);
    connection->send(to_json(Welcome{fresh_secret()}));
  });
  Refusal refusal;
  EXPECT_FALSE(call({"127.0.0.1"}, listener.port(), {fresh_secret(), {.is_on = false}},
                    {.role = "agent"}, 5, &refusal));
  EXPECT_EQ(refusal.code, ExitCode::refused);
  EXPECT_NE(refusal.why.find("secret"), std::string::npos) << refusal.why;
  server.join();
}

// An intermediary cannot redirect copies by changing the caller's port.
TEST(Handshake, AnotherPortIsAnotherCaller) {
  Listener listener("127.0.0.1");
  const std::string secret = fresh_secret();
  std::string said;
  std::thread server([&] {
    auto connection = wait_for_caller(listener);
    Doorkeeper door(secret);
    connection->send(door.challenge());
    std::string text = connection->receive_one(5).value_or("");
    const std::size_t port = text.find("\"port\":4711");
    ASSERT_NE(port, std::string::npos) << text;
    std::string welcome;
    EXPECT_NO_THROW((void)door.accept(text, welcome));
    text.replace(port, 11, "\"port\":4712");
    EXPECT_THROW((void)door.accept(text, welcome), DataError);
  });
  (void)call({"127.0.0.1"}, listener.port(), {secret, {.is_on = false}},
             {.role = "agent", .node = "n1", .port = 4711}, 5);
  server.join();
}

// A proof is valid for one challenge and one name only.
TEST(Handshake, ProofsAreOfOneMomentAndOneName) {
  const std::string secret = fresh_secret();
  const std::string proof = proof_of(secret, "caller", "n1", "n2", "agent a");
  EXPECT_EQ(proof, proof_of(secret, "caller", "n1", "n2", "agent a"));
  EXPECT_NE(proof, proof_of(secret, "caller", "n3", "n2", "agent a"));
  EXPECT_NE(proof, proof_of(secret, "caller", "n1", "n2", "agent b"));
  EXPECT_NE(proof, proof_of(secret, "listener", "n1", "n2", "agent a"));
  EXPECT_NE(proof, proof_of(secret, "caller", "n1:n2", "", "agent a"));
  EXPECT_TRUE(same_proof(proof, proof));
  EXPECT_FALSE(same_proof(proof, proof.substr(1)));
}

TEST(Connection, NobodyThereIsNoConnection) {
  int port = 0;
  { port = Listener("127.0.0.1").port(); }
  EXPECT_FALSE(connect_to("127.0.0.1", port, 1));
  EXPECT_FALSE(connect_to("no-such-host.invalid", port, 1));
}

TEST(Connection, LargePayloadsArrive) {
  Listener listener("127.0.0.1");
  const std::string large(3 << 20, 'x');
  std::thread sender([&] {
    auto connection = wait_for_caller(listener);
    connection->send(large);
    EXPECT_TRUE(connection->drain(10));
    (void)connection->receive_one(10);
  });
  auto connection = connect_to("127.0.0.1", listener.port(), 5);
  ASSERT_TRUE(connection);
  connection->trust();
  EXPECT_EQ(connection->receive_one(10), large);
  connection->send("done");
  sender.join();
}

}  // namespace
}  // namespace trireme
