#include <fstream>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "slurm/agent/copy_messages.h"
#include "slurm/agent/copy_receiver.h"
#include "slurm/agent/copy_sender.h"
#include "slurm/wire/secret.h"
#include "src/base/digest.h"
#include "src/base/error.h"
#include "src/base/sealed_json.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {
namespace fs = std::filesystem;

void write(const fs::path& path, const std::string& text) {
  make_directories(path.parent_path());
  std::ofstream(path, std::ios::trunc | std::ios::binary) << text;
}

std::string shard_text(int step) { return std::string(3'000'000, static_cast<char>('a' + step)); }

// Makes a step as the ranks of a node leave it. Its manifest also lists a shard of another node.
// If it is encrypted, its key lies beside it.
fs::path make_step(const fs::path& node, int step, bool is_encrypted = false) {
  const fs::path folder = node / "memory" / "own" / fmt::format("step-{:08}-g000001", step);
  const auto digest = [](const std::string& text) {
    return hex64(xxh3(text.data(), static_cast<std::int64_t>(text.size())));
  };
  nlohmann::ordered_json manifest = {
      {"version", is_encrypted ? 2 : 1},
      {"shards",
       {{{"file", "shard-00000.safetensors"}, {"xxh3", digest(shard_text(step))}},
        {{"file", "shard-00001.safetensors"}, {"xxh3", digest("elsewhere")}}}},
      {"last", 0}};
  if (is_encrypted) {
    manifest["encryption"] = {{"cipher", "AES-256-GCM"}};
    write(folder / "keys.json", "the wrapped key");
  }
  write(folder / "shard-00000.safetensors", shard_text(step));
  write(folder / "manifest.json", seal_json(manifest));
  write(folder / "WANTS_COPY", "shard-00000.safetensors\n");
  return folder;
}

bool becomes_true(const std::function<bool()>& condition) {
  for (int i = 0; i < 500; ++i) {
    if (condition()) {
      return true;
    }
    ::usleep(20'000);
  }
  return false;
}

// Sends these frames to the receiver over an authenticated connection and returns its answer.
std::string say(int port, const std::string& secret, const std::vector<std::string>& frames) {
  auto connection = call({"127.0.0.1"}, port, secret, {.role = "copy", .node = "na"}, 5);
  if (!connection) {
    return "not let in";
  }
  for (const std::string& frame : frames) {
    connection->send(frame);
  }
  return connection->receive_one(5).value_or("no answer");
}

class Copies : public testing::Test {
 protected:
  fs::path there(int step) const {
    return b_.path() / "memory" / "partner" / "na" / fmt::format("step-{:08}-g000001", step);
  }
  Partner partner() const { return {"nb", receiver_.port(), {"127.0.0.1"}}; }

  TempFolder a_;
  TempFolder b_;
  std::string secret_ = fresh_secret();
  CopyReceiver receiver_{b_.path(), secret_, "127.0.0.1"};
  CopySender sender_{a_.path(), "na", secret_};
};

TEST_F(Copies, TheWrappedKeyGoesWithAnEncryptedStep) {
  const fs::path step = make_step(a_.path(), 10, true);
  sender_.set_partner(partner());
  ASSERT_TRUE(becomes_true([&] { return fs::exists(step / "COPIED"); }));
  EXPECT_EQ(read_file(there(10) / "keys.json"), "the wrapped key");
  // Without it, the copy would be of no use.
  const fs::path without = make_step(a_.path(), 20, true);
  fs::remove(without / "keys.json");
  ASSERT_TRUE(becomes_true([&] { return !sender_.trouble().empty(); }));
  EXPECT_THAT(sender_.trouble(), testing::HasSubstr("keys.json"));
  EXPECT_FALSE(fs::exists(there(20)));
}

TEST_F(Copies, TheNewestStepGoesToThePartnerAndReplacesTheOlder) {
  const fs::path first = make_step(a_.path(), 10);
  sender_.set_partner(partner());
  ASSERT_TRUE(becomes_true([&] { return fs::exists(first / "COPIED"); }));
  EXPECT_FALSE(fs::exists(first / "WANTS_COPY"));
  EXPECT_EQ(read_file(there(10) / "shard-00000.safetensors"), shard_text(10));
  EXPECT_EQ(read_file(there(10) / "manifest.json"), read_file(first / "manifest.json"));
  EXPECT_FALSE(fs::exists(there(10) / "shard-00001.safetensors"));
  const fs::path second = make_step(a_.path(), 20);
  ASSERT_TRUE(becomes_true([&] { return fs::exists(second / "COPIED"); }));
  EXPECT_TRUE(fs::exists(there(20)));
  EXPECT_FALSE(fs::exists(there(10)));
}

// A rank may take its file for the next step. The rest of the step is no copy and replaces none.
TEST_F(Copies, AStepThatHasLostAShardIsNotKept) {
  const fs::path first = make_step(a_.path(), 10);
  sender_.set_partner(partner());
  ASSERT_TRUE(becomes_true([&] { return fs::exists(first / "COPIED"); }));
  const fs::path step = a_.path() / "memory" / "own" / ".tmp-20-1";
  fs::rename(make_step(a_.path() / "b", 20), step);
  fs::remove(step / "shard-00000.safetensors");
  testing::internal::CaptureStderr();
  fs::rename(step, a_.path() / "memory" / "own" / "step-00000020-g000001");
  ASSERT_TRUE(becomes_true([&] { return !sender_.trouble().empty(); }));
  EXPECT_NE(sender_.trouble().find("shard-00000"), std::string::npos);
  EXPECT_NE(testing::internal::GetCapturedStderr().find(
                "cannot copy the newest checkpoint in memory to nb"),
            std::string::npos);
  EXPECT_FALSE(fs::exists(there(20)));
  EXPECT_TRUE(fs::exists(there(10)));
}

// After a rewind, a run writes a step of the same name again.
TEST_F(Copies, AStepThatIsWantedOnceMoreIsCopiedOnceMore) {
  const fs::path step = make_step(a_.path(), 10);
  sender_.set_partner(partner());
  ASSERT_TRUE(becomes_true([&] { return fs::exists(step / "COPIED"); }));
  fs::remove(step / "COPIED");
  make_step(a_.path(), 10);
  EXPECT_TRUE(becomes_true([&] { return fs::exists(step / "COPIED"); }));
}

TEST_F(Copies, ACopyOfAnotherNodeIsRefused) {
  const std::string answer =
      say(receiver_.port(), secret_,
          {to_json(CopyBegin{"nx", "step-00000010-g000001"}),
           to_json(CopyFile{"manifest.json", 4, xxh3("good", 4)}), "good", to_json(CopyEnd{})});
  EXPECT_NE(answer.find("na sent a checkpoint of nx"), std::string::npos);
  EXPECT_FALSE(fs::exists(b_.path() / "memory" / "partner" / "nx"));
}

// If a file was reused for the next step meanwhile, it does not match the manifest.
TEST_F(Copies, AStepThatIsNotWhatItsManifestSaysIsNotKept) {
  const fs::path step = make_step(a_.path(), 10);
  write(step / "shard-00000.safetensors", shard_text(11));
  sender_.set_partner(partner());
  ASSERT_TRUE(becomes_true([&] { return !sender_.trouble().empty(); }));
  EXPECT_NE(sender_.trouble().find("manifest"), std::string::npos);
  EXPECT_FALSE(fs::exists(there(10)));
  EXPECT_FALSE(fs::exists(step / "COPIED"));
}

TEST_F(Copies, AnotherPartnerGetsTheStepAgain) {
  const fs::path step = make_step(a_.path(), 10);
  sender_.set_partner(partner());
  ASSERT_TRUE(becomes_true([&] { return fs::exists(step / "COPIED"); }));
  const TempFolder c;
  const CopyReceiver other(c.path(), secret_, "127.0.0.1");
  sender_.set_partner({"nc", other.port(), {"127.0.0.1"}});
  EXPECT_TRUE(becomes_true(
      [&] { return fs::exists(c.path() / "memory/partner/na/step-00000010-g000001"); }));
}

// The partner accepts the sender and then falls silent, which must not delay the next order.
TEST_F(Copies, APartnerThatFallsSilentIsLeftForAnother) {
  Listener silent("127.0.0.1");
  const fs::path step = make_step(a_.path(), 10);
  sender_.set_partner({"silent", silent.port(), {"127.0.0.1"}});
  std::optional<Connection> held;
  ASSERT_TRUE(becomes_true([&] { return (held = silent.accept()).has_value(); }));
  const TlsContext context(secret_);
  held->encrypt(context, TlsSide::listener);
  Doorkeeper door(secret_);
  held->send(door.challenge());
  std::string welcome;
  const std::string hello = held->receive_one(5).value_or("");
  (void)door.accept(hello, welcome, held->binding());
  held->trust();
  held->send(welcome);
  ASSERT_TRUE(held->receive_one(5));
  sender_.set_partner(partner());
  EXPECT_TRUE(becomes_true([&] { return fs::exists(step / "COPIED"); }));
}

TEST_F(Copies, BytesThatChangedOnTheirWayAreNotKept) {
  const std::string answer = say(receiver_.port(), secret_,
                                 {to_json(CopyBegin{"na", "step-00000010-g000001"}),
                                  to_json(CopyFile{"shard-00000.safetensors", 4, xxh3("good", 4)}),
                                  "evil", to_json(CopyEnd{})});
  EXPECT_NE(answer.find("was changed on the way"), std::string::npos);
  EXPECT_FALSE(fs::exists(there(10)));
  EXPECT_TRUE(fs::is_empty(b_.path() / "memory" / "partner" / "na"));
}

// The receiver closes idle connections after 5 s, but a copy does not have to wait for that.
TEST_F(Copies, IdleConnectionsKeepNoCopyWaiting) {
  std::vector<std::optional<Connection>> idle;
  for (int i = 0; i < 300; ++i) {
    idle.push_back(connect_to("127.0.0.1", receiver_.port(), 5));
    ASSERT_TRUE(idle.back());
  }
  const fs::path step = make_step(a_.path(), 10);
  sender_.set_partner(partner());
  EXPECT_TRUE(becomes_true([&] { return fs::exists(step / "COPIED"); }));
  EXPECT_EQ(sender_.trouble(), "");
}

TEST_F(Copies, NothingIsWrittenElsewhere) {
  for (const auto& [node, step, file] :
       {std::tuple("../x", "step-00000010-g000001", "manifest.json"),
        std::tuple("na", "../../step-00000010-g000001", "manifest.json"),
        std::tuple("na", "step-00000010-g000001", "../manifest.json"),
        std::tuple("na", "step-00000010-g000001", "/etc/manifest.json"),
        std::tuple("..", "step-00000010-g000001", "manifest.json")}) {
    const std::string answer =
        say(receiver_.port(), secret_,
            {to_json(CopyBegin{node, step}), to_json(CopyFile{file, 1, 0}), "x"});
    // A sender that is cut off in the middle of a message may not receive the reason.
    EXPECT_EQ(answer.find("\"whole\":true"), std::string::npos) << answer;
  }
  for (const auto& entry : fs::recursive_directory_iterator(b_.path())) {
    EXPECT_FALSE(entry.is_regular_file()) << entry.path();
  }
  EXPECT_EQ(say(receiver_.port(), fresh_secret(), {}), "not let in");
}

TEST(CopyMessages, HostileBytesAreRefused) {
  for (const char* bad : {"", "{}", "[]", R"({"copy":"dance"})",
                          R"({"copy":"file","name":"x","bytes":1,"xxh3":"0123456789abcdef"})",
                          R"({"copy":"file","name":"manifest.json","bytes":-1,"xxh3":"0"})",
                          R"({"copy":"begin","node":"n1","step":"step-1-g1"})"}) {
    EXPECT_THROW((void)parse_copy_message(bad), DataError) << bad;
  }
  EXPECT_TRUE(is_memory_step_name("step-00000100-g000003"));
  EXPECT_FALSE(is_memory_step_name("step-00000100-g000003x"));
  EXPECT_FALSE(is_memory_step_name("step--0000100-g000003"));
  EXPECT_TRUE(age_of("step-00000001-g000002") > age_of("step-00000100-g000001"));
  EXPECT_TRUE(is_step_file_name("shard-00012.safetensors"));
  EXPECT_FALSE(is_step_file_name("shard-12.safetensors"));
  EXPECT_FALSE(is_step_file_name("WANTS_COPY"));
}

}  // namespace
}  // namespace trireme
