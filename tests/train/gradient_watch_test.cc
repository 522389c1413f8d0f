#include "src/train/engine/gradient_watch.h"

#include <gtest/gtest.h>

#include "src/base/fault.h"
#include "src/train/training_fault_sites.h"

namespace trireme {
namespace {

Parameter vector_of_two(const char* name) {
  Parameter parameter;
  parameter.name = name;
  parameter.place = Place::all({2});
  return parameter;
}

// Returns the digest of two parameters whose gradients are `values`; turned: in the other order of
// backward.
std::uint64_t digest(std::vector<float> values, bool turned) {
  DeviceContext context(Device::cpu(), 1);
  ParameterStore store(context, DType::f32);
  const ParameterId a = store.add(vector_of_two("a"));
  const ParameterId b = store.add(vector_of_two("b"));
  store.allocate();
  std::vector<float> flat(static_cast<std::size_t>(store.flat_elements()), 0);
  std::vector<ParameterId> announced;
  FlatGradients to(store, {flat.data(), store.flat_elements(), DType::f32},
                   [&](ParameterId id) { announced.push_back(id); });
  GradientWatch watch(store, to, true);
  for (const ParameterId id : turned ? std::vector{b, a} : std::vector{a, b}) {
    auto* const gradient = static_cast<float*>(watch.gradient(id, 1).data);
    gradient[0] = values[id == a ? 0 : 2];
    gradient[1] = values[id == a ? 1 : 3];
    watch.ready(id);
  }
  EXPECT_EQ(announced, turned ? (std::vector{b, a}) : (std::vector{a, b}));
  const auto digests = context.read<std::int64_t>(watch.digests());
  return watch.digest(digests);
}

TEST(GradientWatch, DigestsEachGradientWhateverTheirOrder) {
  const std::uint64_t one = digest({1, 2, 3, 4}, false);
  EXPECT_EQ(one, digest({1, 2, 3, 4}, true));
  EXPECT_NE(one, digest({1, 2, 3, 5}, false));
  EXPECT_NE(one, digest({3, 4, 1, 2}, false)) << "whose gradient it is counts, too";
  EXPECT_NE(one, digest({1, 2, 3, -4}, false));
}

TEST(GradientWatch, IsWhereAFaultChangesOne) {
  const std::uint64_t sound = digest({1, 2, 3, 4}, false);
  arm_faults(parse_fault_plan("step.gradient:0:1:scale=2", kTrainingFaultSites), 0, 1);
  const std::uint64_t hurt = digest({1, 2, 3, 4}, false);
  arm_faults({}, 0, 1);
  EXPECT_NE(sound, hurt);
  EXPECT_EQ(hurt, digest({2, 4, 3, 4}, false));
}

}  // namespace
}  // namespace trireme
