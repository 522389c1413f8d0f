#include "src/train/parts/product_choices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpi/thread/thread_world.h"
#include "src/base/error.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

const ProductTable kFirst = {{"8x8x4 f32", "tile 20"}, {"8x8x16 f32", "tile 20"}};

TEST(AgreeOnProducts, ReturnsThoseOfAllRanks) {
  ThreadWorld(3).run([](Communicator& comm) {
    const ProductTable last = {{"8x8x4 f32", "tile 20"}, {"1x1x1 f32", "tile 18"}};
    const ProductTable all =
        agree_on_products(comm, comm.rank() == 2 ? last : kFirst, "GPU", "elastic");
    EXPECT_THAT(all, UnorderedElementsAre(std::pair("8x8x4 f32", "tile 20"),
                                          std::pair("8x8x16 f32", "tile 20"),
                                          std::pair("1x1x1 f32", "tile 18")));
  });
}

TEST(AgreeOnProducts, RefusesRanksThatChoseDifferently) {
  ThreadWorld(4, {"a", "a", "b", "b"}).run([](Communicator& comm) {
    ProductTable own = kFirst;
    if (comm.rank() >= 2) {
      own["8x8x16 f32"] = "tile 18";
    }
    const std::string device = comm.rank() == 2 ? "GPU-2" : "GPU-0";
    EXPECT_THAT(
        message_of<ConfigError>([&] { agree_on_products(comm, own, device, "layout"); }),
        AllOf(HasSubstr("rank 0 (host a, GPU-0) computes the product 8x8x16 f32 by tile 20"),
              HasSubstr("rank 2 (host b, GPU-2) by tile 18"),
              HasSubstr("numerics.reproducibility is layout")));
    const ProductTable any = agree_on_products(comm, own, device, "fast");
    EXPECT_EQ(any, kFirst);
  });
}

TEST(AgreeOnProducts, RefusesRanksWithDifferentVersionsOfCudnn) {
  ThreadWorld(2).run([](Communicator& comm) {
    ProductTable own = kFirst;
    own["attention 1x24 bf16"] =
        comm.rank() == 0 ? "cuDNN 9.19.0, engine 2" : "cuDNN 9.20.0, engine 2";
    EXPECT_THAT(
        message_of<ConfigError>([&] { agree_on_products(comm, own, "GPU", "elastic"); }),
        AllOf(HasSubstr("computes attention 1x24 bf16 by cuDNN 9.19.0, engine 2, but rank 1"),
              HasSubstr("install the same driver, cuBLASLt and cuDNN on all nodes")));
  });
}

}  // namespace
}  // namespace trireme
