// Tests that one flipped bit in what ranks hold alike is found, and its rank named.
#include "src/train/watch/replica_guard.h"

#include <mutex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpi/rank_fault.h"
#include "tests/train/layouts/tiny_runs.h"

namespace trireme {
namespace {

using testing::HasSubstr;
using testing::Not;

// A Flip says which bit to flip: on which rank, and in which parameter or its second moment.
struct Flip {
  int rank = -1;
  std::string parameter;
  bool moment = false;
};

void flip_bit(const View& values) { static_cast<unsigned char*>(values.data)[5] ^= 4; }

void flip_bit(Engine& engine, const Flip& flip) {
  bool done = false;
  for (const auto& chunk : engine.chunks()) {
    const ParameterStore& store = chunk->parameters;
    for (const StatePiece& piece : chunk->state.pieces_to_load()) {
      if (flip.moment && store[piece.id].name == flip.parameter) {
        flip_bit(piece.states.at(1));
        done = true;
      }
    }
    for (ParameterId id = 0; id < store.count(); ++id) {
      if (!flip.moment && store[id].name == flip.parameter) {
        flip_bit(store.compute(id));
        done = true;
      }
    }
  }
  EXPECT_TRUE(done) << flip.parameter;
}

// Returns the error of each rank, or "".
std::vector<std::string> compare(const Choice& choice, const Flip& flip,
                                 Family family = Family::gpt2) {
  const RunConfig config = config_of(model_of(family, 4), choice);
  ThreadWorld world(choice.ranks());
  std::vector<std::string> reported(static_cast<std::size_t>(choice.ranks()));
  world.run([&](Communicator& comm) {
    DeviceContext context(Device::cpu(), 1, comm.memory());
    Engine engine(config, make_layout(config, comm.size(), comm.size()),
                  {comm, comm, world.recorder(comm.rank()), context});
    engine.set_deadline(std::chrono::seconds(60));
    engine.initialize(1);
    HashedTokens tokens(engine);
    TrainStep step(engine, [&] { return tokens.next(); });
    TrainingCounters counters;
    step.run(counters, 0);
    EXPECT_NO_THROW(compare_replicas(engine, 1));
    if (comm.rank() == flip.rank) {
      flip_bit(engine, flip);
    }
    try {
      compare_replicas(engine, 2);
    } catch (const RankFault& fault) {
      reported[static_cast<std::size_t>(comm.rank())] =
          fmt::format("{}; blames {}", fault.what(), fault.rank);
    } catch (const DeviceError& error) {
      reported[static_cast<std::size_t>(comm.rank())] = error.what();
    }
  });
  return reported;
}

TEST(ReplicaGuard, NamesTheReplicaThatDiffers) {
  for (const int zero : {0, 1, 2}) {
    for (const std::string& text :
         compare({{4, 1, 1}, zero}, {2, "transformer.h.1.attn.c_attn.weight"})) {
      EXPECT_THAT(text, HasSubstr("rank 2 (host")) << zero;
      EXPECT_THAT(text, HasSubstr("of the dp group differs in transformer.h.1.attn.c_attn.weight"));
      EXPECT_THAT(text, HasSubstr("after step 2"));
      EXPECT_THAT(text, HasSubstr("; blames 2"));
    }
  }
}

TEST(ReplicaGuard, NamesBothOfTwo) {
  for (const std::string& text : compare({{2, 1, 2}, 0}, {3, "transformer.ln_f.weight"})) {
    EXPECT_THAT(text, HasSubstr("one of rank 2 (host"));
    EXPECT_THAT(text, HasSubstr("rank 3 (host"));
    EXPECT_THAT(text, HasSubstr("transformer.ln_f.weight"));
    EXPECT_THAT(text, Not(HasSubstr("blames")));
  }
}

TEST(ReplicaGuard, ComparesWhatATensorParallelGroupHoldsAlike) {
  for (const std::string& text : compare({{1, 4, 1}, 0}, {1, "transformer.h.0.ln_1.weight"})) {
    EXPECT_THAT(text, HasSubstr("rank 1 (host"));
    EXPECT_THAT(text, HasSubstr("of the tp group differs in transformer.h.0.ln_1.weight"));
    EXPECT_THAT(text, HasSubstr("; blames 1"));
  }
}

TEST(ReplicaGuard, NamesARankOfAGridAndLeavesNobodyWaiting) {
  for (const std::string& text :
       compare({{2, 2, 1}, 0}, {1, "transformer.h.0.attn.c_attn.weight"})) {
    EXPECT_THAT(text, HasSubstr("one of rank 1 (host"));
    EXPECT_THAT(text, HasSubstr("rank 3 (host"));
    EXPECT_THAT(text, HasSubstr("of the dp group differs in transformer.h.0.attn.c_attn.weight"));
  }
}

TEST(ReplicaGuard, ComparesCopiesOfHeads) {
  for (const std::string& text :
       compare({{1, 8, 1}, 0}, {3, "model.layers.1.self_attn.k_proj.weight"}, Family::llama)) {
    EXPECT_THAT(text, HasSubstr("one of rank 2 (host"));
    EXPECT_THAT(text, HasSubstr("rank 3 (host"));
    EXPECT_THAT(text, Not(HasSubstr("rank 4 (host")));
    EXPECT_THAT(text, HasSubstr("of the tp group differs in model.layers.1.self_attn.k_proj"));
  }
}

TEST(ReplicaGuard, ComparesMoments) {
  for (const std::string& text :
       compare({{4, 1, 1}, 0}, {1, "transformer.h.0.ln_1.weight", true})) {
    EXPECT_THAT(text, HasSubstr("rank 1 (host"));
    EXPECT_THAT(text, HasSubstr("differs in optimizer.v.transformer.h.0.ln_1.weight"));
  }
}

TEST(ReplicaGuard, IsContentWithSoundRanks) {
  for (const Choice& choice :
       {Choice{{2, 2, 2}, 1}, Choice{{4, 1, 1}, 3}, Choice{{1, 1, 1}, 0}, Choice{{1, 8, 1}, 0}}) {
    EXPECT_THAT(compare(choice, {}), testing::Each(testing::IsEmpty())) << choice.text();
  }
}

}  // namespace
}  // namespace trireme
