// One flipped bit in what ranks hold alike is found, and its rank named.
#include "src/train/replica_guard.h"

#include <mutex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/train/layouts/tiny_runs.h"

namespace trireme {
namespace {

using testing::HasSubstr;

// Which bit to flip: on which rank, in which parameter.
struct Flip {
  int rank = -1;
  std::string parameter;
};

void flip_bit(Engine& engine, const std::string& name) {
  for (const auto& chunk : engine.chunks()) {
    for (ParameterId id = 0; id < chunk->parameters.count(); ++id) {
      if (chunk->parameters[id].name == name) {
        static_cast<unsigned char*>(chunk->parameters.compute(id).data)[5] ^= 4;
        return;
      }
    }
  }
  FAIL() << name;
}

// What each rank is told; empty: nothing.
std::vector<std::string> compare(const Choice& choice, const Flip& flip) {
  const RunConfig config = config_of(model_of(Family::gpt2, 4), choice);
  ThreadWorld world(choice.ranks());
  std::vector<std::string> told(static_cast<std::size_t>(choice.ranks()));
  world.run([&](Communicator& comm) {
    Stream stream({}, 1);
    Pool pool{Device{}};
    Pool shared_pool({}, comm.memory());
    Engine engine(config, make_layout(config, comm.size(), comm.size()),
                  {comm, world.recorder(comm.rank()), kernels_for({}), stream, pool, shared_pool});
    engine.set_deadline(std::chrono::seconds(60));
    engine.initialize(1);
    HashedTokens tokens(config, engine.micro_batches());
    TrainStep step(engine, [&] { return tokens.next(); });
    TrainingCounters counters;
    step.run(counters, 0);
    EXPECT_NO_THROW(compare_replicas(engine, 1));
    if (comm.rank() == flip.rank) {
      flip_bit(engine, flip.parameter);
    }
    try {
      compare_replicas(engine, 2);
    } catch (const DeviceError& error) {
      told[static_cast<std::size_t>(comm.rank())] = error.what();
    }
  });
  return told;
}

TEST(ReplicaGuard, NamesTheReplicaThatDiffers) {
  for (const int zero : {0, 1, 2}) {
    for (const std::string& text :
         compare({{4, 1, 1}, zero}, {2, "transformer.h.1.attn.c_attn.weight"})) {
      EXPECT_THAT(text, HasSubstr("rank 2 (host")) << zero;
      EXPECT_THAT(text, HasSubstr("of the dp group differs in transformer.h.1.attn.c_attn.weight"));
      EXPECT_THAT(text, HasSubstr("after step 2"));
    }
  }
}

TEST(ReplicaGuard, NamesBothOfTwo) {
  for (const std::string& text : compare({{2, 1, 2}, 0}, {3, "transformer.ln_f.weight"})) {
    EXPECT_THAT(text, HasSubstr("one of rank 2 (host"));
    EXPECT_THAT(text, HasSubstr("rank 3 (host"));
    EXPECT_THAT(text, HasSubstr("transformer.ln_f.weight"));
  }
}

TEST(ReplicaGuard, ComparesWhatATensorParallelGroupHoldsAlike) {
  for (const std::string& text : compare({{1, 4, 1}, 0}, {1, "transformer.h.0.ln_1.weight"})) {
    EXPECT_THAT(text, HasSubstr("rank 1 (host"));
    EXPECT_THAT(text, HasSubstr("of the tp group differs in transformer.h.0.ln_1.weight"));
  }
}

TEST(ReplicaGuard, IsContentWithSoundRanks) {
  for (const Choice& choice : {Choice{{2, 2, 2}, 1}, Choice{{4, 1, 1}, 3}, Choice{{1, 1, 1}, 0}}) {
    EXPECT_THAT(compare(choice, {}), testing::Each(testing::IsEmpty())) << choice.text();
  }
}

}  // namespace
}  // namespace trireme
