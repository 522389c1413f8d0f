#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/base/file.h"
#include "src/train/run/run_config.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using testing::HasSubstr;

RunConfig secured(const std::vector<std::string>& arguments) {
  const TempFolder folder;
  const auto file = folder.path() / "run.yaml";
  write_file_durably(file,
                     "model: {preset: gpt2-124m}\ndata: {train: d}\nrun: {dir: r}\n"
                     "train: {steps: 5, global_batch: 8}\n");
  return load_run_config({.file = file, .arguments = arguments, .environment = nullptr, .site = {}})
      .config;
}

std::string refusal_of(const std::vector<std::string>& arguments) {
  return message_of<ConfigError>([&] { secured(arguments); });
}

TEST(SecurityConfig, TransportsAreReadWithTheirNetworks) {
  EXPECT_EQ(secured({}).security.transport, "any");
  const SecurityConfig isolated =
      secured({"security.transport=isolated", "security.networks=[10.77.0.0/24,fd00::/8]"})
          .security;
  EXPECT_EQ(isolated.networks.size(), 2U);
  EXPECT_THAT(refusal_of({"security.transport=isolated"}), HasSubstr("needs security.networks"));
  EXPECT_THAT(refusal_of({"security.transport=vpn"}),
              HasSubstr("any, isolated and tunnel:INTERFACE"));
  EXPECT_THAT(refusal_of({"security.networks=[10.77.0.1/24]"}), HasSubstr("is no network"));
}

TEST(SecurityConfig, CopiesOfCheckpointsDoNotGoPastATunnelInPlain) {
  const std::vector<std::string> tunnel = {"security.transport=tunnel:wg0",
                                           "checkpoint.memory_every=2", "launch.tls=false"};
  const auto with = [&](const std::string& more) {
    std::vector<std::string> arguments = tunnel;
    arguments.push_back(more);
    return arguments;
  };
  EXPECT_THAT(refusal_of(tunnel), HasSubstr("copies of checkpoints from node to node go past"));
  EXPECT_EQ(secured(with("encryption.keys=[file:a.key]")).security.transport, "tunnel:wg0");
  EXPECT_EQ(secured(with("launch.tls=true")).security.transport, "tunnel:wg0");
  EXPECT_FALSE(secured(with("checkpoint.partner=false")).checkpoint.partner);
  EXPECT_FALSE(secured(with("checkpoint.memory_every=0")).checkpoint.uses_memory());
}

TEST(EncryptionConfig, LogsNeedKeys) {
  EXPECT_FALSE(secured({"encryption.keys=[file:k]"}).encryption.logs);
  EXPECT_TRUE(secured({"encryption.keys=[file:k]", "encryption.logs=true"}).encryption.logs);
  EXPECT_THAT(refusal_of({"encryption.logs=true"}), HasSubstr("encryption.keys names no key"));
}

}  // namespace
}  // namespace trireme
