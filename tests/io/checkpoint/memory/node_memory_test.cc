#include "io/checkpoint/memory/node_memory.h"

#include <cstdlib>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "tests/io/checkpoint/memory/memory_nodes.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

TEST(MemoryStepNames, ComeBack) {
  for (const MemoryStepName& name :
       {MemoryStepName{0, 0}, MemoryStepName{120, 3}, MemoryStepName{4'000'000'000, 12'345'678}}) {
    EXPECT_EQ(parse_memory_step_name(name.to_string()), name);
  }
  EXPECT_EQ((MemoryStepName{120, 3}.to_string()), "step-00000120-g000003");
}

TEST(MemoryStepNames, NoOtherSpelling) {
  for (const char* name :
       {"", "step-", "-g", "step-g", "step-00000120", "step-120-g3", "step-00000120-g3",
        "step-00000120-g000003x", "step--0000120-g000003", "step-00000120-g-00003",
        "step-+0000120-g000003", " step-00000120-g000003", "step-00000120-g000003-g000003",
        "step-99999999999999999999-g000003"}) {
    EXPECT_FALSE(parse_memory_step_name(name).has_value()) << name;
  }
}

TEST(MemorySteps, NoFolderHoldsNone) {
  TempFolder folder;
  EXPECT_TRUE(list_memory_steps({}).empty());
  EXPECT_TRUE(list_memory_steps({folder.path() / "none", "n"}).empty());
  EXPECT_TRUE(list_memory_steps({folder.path(), "n"}).empty());
}

TEST(MemorySteps, AreToldWithWhatIsThere) {
  const Nodes nodes(2);
  ASSERT_TRUE(save_in_memory(nodes, {small_state(1), small_state(2)}, cut_flat, 4)[1].durable);
  nodes.copy_to_partner(1, 0, 2, 1);
  // Add a copy of another node.
  const fs::path by_name = nodes.node(0).partner() / "node-7";
  fs::create_directories(by_name);
  fs::copy(nodes.own_step(1, 1, 1), by_name / "step-00000001-g000001");
  const std::vector<MemoryStep> steps = list_memory_steps(nodes.node(0));
  ASSERT_EQ(steps.size(), 4U);
  EXPECT_EQ(steps[0].name, (MemoryStepName{2, 1}));
  EXPECT_FALSE(steps[0].is_partner);
  EXPECT_THAT(steps[0].shards, testing::ElementsAre(0, 1));
  EXPECT_TRUE(steps[1].is_partner);
  EXPECT_THAT(steps[1].shards, testing::ElementsAre(2, 3));
  EXPECT_EQ(steps[2].name, (MemoryStepName{1, 1}));
  EXPECT_EQ(steps[3].path, by_name / "step-00000001-g000001");
  EXPECT_EQ(contents_id(*steps[0].manifest), contents_id(*steps[1].manifest));
  EXPECT_NE(contents_id(*steps[0].manifest), contents_id(*steps[2].manifest));
}

TEST(MemorySteps, WhatTheyHoldIsCounted) {
  EXPECT_EQ(held_bytes({}), 0);
  const Nodes nodes(2);
  EXPECT_EQ(held_bytes(nodes.node(0)), 0);
  ASSERT_TRUE(save_in_memory(nodes, {small_state(1), small_state(2)}, cut_flat, 4)[1].durable);
  const std::int64_t own = held_bytes(nodes.node(0));
  EXPECT_GE(own, 2 * list_memory_steps(nodes.node(0)).at(0).manifest.value().shards[0].bytes);
  nodes.copy_to_partner(1, 0, 2, 1);
  EXPECT_GT(held_bytes(nodes.node(0)), own);
  const std::int64_t with_partner = held_bytes(nodes.node(0));
  fs::create_directories(nodes.node(0).own() / ".free-1");
  std::ofstream(nodes.node(0).own() / ".free-1" / "slot") << "12345";
  fs::create_symlink("/dev/zero", nodes.node(0).own() / "endless");
  EXPECT_EQ(held_bytes(nodes.node(0)), with_partner + 5);
}

TEST(NodeMemory, TheNameOfTheNodeNamesAFolder) {
  for (const char* name : {"../x", "a/b", "/", ".", ".."}) {
    ::setenv("TRIREME_NODE", name, 1);
    EXPECT_THAT(message_of<ConfigError>([] { (void)NodeMemory::from_environment(); }),
                HasSubstr("cannot name a folder"))
        << name;
  }
  ::setenv("TRIREME_NODE", "n1.cluster", 1);
  EXPECT_EQ(NodeMemory::from_environment().name, "n1.cluster");
  ::unsetenv("TRIREME_NODE");
}

TEST(MemorySteps, DamageIsToldNotThrown) {
  const Nodes nodes(1);
  ASSERT_TRUE(save_in_memory(nodes, {small_state(1), small_state(2)}, cut_flat, 2)[1].durable);
  const fs::path own = nodes.node(0).own();
  flip_byte(nodes.own_step(0, 2, 1) / "manifest.json", 40);
  fs::resize_file(nodes.own_step(0, 1, 1) / "shard-00000.safetensors", 100);
  fs::copy(nodes.own_step(0, 1, 1), own / "step-00000007-g000001", fs::copy_options::recursive);
  fs::create_directories(own / "step-00000008-g000001");
  fs::create_directories(own / ".tmp-9-1");
  fs::create_directories(own / "something");
  std::ofstream(own / "step-00000009-g000001") << "a file";
  const std::vector<MemoryStep> steps = list_memory_steps(nodes.node(0));
  ASSERT_EQ(steps.size(), 4U);
  EXPECT_THAT(steps[0].problem, HasSubstr("manifest.json"));
  EXPECT_THAT(steps[1].problem, HasSubstr("renamed"));
  EXPECT_FALSE(steps[2].manifest.has_value());
  EXPECT_EQ(steps[3].name.step, 1);
  EXPECT_THAT(steps[3].shards, testing::ElementsAre(1));
}

}  // namespace
}  // namespace trireme
