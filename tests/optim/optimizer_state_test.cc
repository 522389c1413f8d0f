#include "src/optim/optimizer_state.h"

#include <gtest/gtest.h>

#include "src/base/error.h"

namespace trireme {
namespace {

class OptimizerStateTest : public testing::Test {
 protected:
  OptimizerStateTest() {
    for (const std::int64_t elements : {100, 60, 4096, 7}) {
      Parameter parameter;
      parameter.name = fmt::format("p{}", store_.count());
      parameter.place = Place::all({elements});
      parameter.place.primary = store_.count() != 1;
      parameter.joined = store_.count() == 1;
      store_.add(std::move(parameter));
    }
    store_.allocate();
  }

  DeviceContext context_{Device::cpu(), 1};
  ParameterStore store_{context_, DType::f32};
};

TEST_F(OptimizerStateTest, PiecesAreThePartsOfParametersThatAreHeld) {
  // The first range reaches from inside p0 into p1, the second is empty, and the third holds the
  // end of p2, a gap and p3.
  const View working_copies = store_.working_copies();
  const std::int64_t p2 = store_[2].offset;
  MasterWeights masters(store_, {{40, working_copies.slice(40, 80)},
                                 {p2, working_copies.slice(p2, 0)},
                                 {p2 + 4000, working_copies.slice(p2 + 4000, 1000)}});
  const Optimizer optimizer(masters, {});
  const std::vector<StatePiece> pieces = pieces_of(optimizer);
  ASSERT_EQ(pieces.size(), 4U);
  const auto expect = [&](std::size_t i, ParameterId id, std::int64_t first, std::int64_t count) {
    EXPECT_EQ(pieces[i].id, id);
    EXPECT_EQ(pieces[i].first, first);
    EXPECT_EQ(pieces[i].count(), count);
    EXPECT_EQ(pieces[i].value.data, store_.compute(id).slice(first, count).data);
  };
  expect(0, 0, 40, 60);
  expect(1, 1, 0, 20);
  expect(2, 2, 4000, 96);
  expect(3, 3, 0, 7);
  EXPECT_EQ(pieces[1].states[0].data, optimizer.state(0, 0).slice(60, 20).data);
  EXPECT_EQ(pieces[3].states[1].data, optimizer.state(1, 2).slice(96, 7).data);
}

TEST_F(OptimizerStateTest, SharesTileWhatIsPrimaryEvenly) {
  MasterWeights masters(store_);
  const Optimizer optimizer(masters, {});
  const std::vector<StatePiece> all = pieces_of(optimizer);
  for (const int ranks : {1, 2, 3, 7, 64}) {
    std::vector<int> times(static_cast<std::size_t>(store_.flat_elements()), 0);
    for (int rank = 0; rank < ranks; ++rank) {
      std::int64_t count = 0;
      for (const StatePiece& piece : share_to_save(store_, all, rank, ranks)) {
        count += piece.count();
        const std::int64_t at = store_[piece.id].offset + piece.first;
        EXPECT_EQ(piece.value.data, masters.values(0).slice(at, piece.count()).data);
        EXPECT_EQ(piece.states[0].data, optimizer.state(0, 0).slice(at, piece.count()).data);
        EXPECT_EQ(piece.states[1].data, optimizer.state(1, 0).slice(at, piece.count()).data);
        for (std::int64_t i = 0; i < piece.count(); ++i) {
          ++times[static_cast<std::size_t>(at + i)];
        }
      }
      EXPECT_NEAR(static_cast<double>(count), (100 + 4096 + 7) / static_cast<double>(ranks), 1);
    }
    for (const Parameter& parameter : store_.all()) {
      for (std::int64_t i = 0; i < parameter.elements(); ++i) {
        ASSERT_EQ(times[static_cast<std::size_t>(parameter.offset + i)],
                  parameter.place.primary ? 1 : 0)
            << parameter.name << " " << i;
      }
    }
  }
}

}  // namespace
}  // namespace trireme
