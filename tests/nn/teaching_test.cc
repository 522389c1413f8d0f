// Tests what a head learns from a teacher: its gradients are derivatives of the joint loss, both
// parts of which it reports, and what a teacher must not change.
#include "src/nn/teaching.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/ignored_target.h"
#include "tests/nn/tiny_model.h"

namespace trireme {
namespace {

class TeachingTest : public testing::TestWithParam<std::string> {
 protected:
  // Lets the student of this configuration learn from a Llama.
  TeachingTest() {
    student_.run.training = true;
    student_.run.taught = taught_.view();
    tokens_.targets[3] = kIgnoredTarget;
  }
  double loss(const Teaching* teaching, float scale = 1) {
    student_.run.teaching = teaching;
    return student_.model.forward_backward(tokens_.micro_batch, scale, student_.run);
  }
  std::vector<float> gradients() { return student_.context.read<float>(student_.gradients.view()); }
  std::vector<double> parts() { return student_.context.read<double>(taught_.view()); }
  Teaching teaching(float weight, float temperature) {
    return {teacher_.model, teacher_.store, weight, temperature};
  }

  TinyModel student_{tiny_gpt2(), DType::f32, kernels_named(GetParam())};
  TinyModel teacher_{tiny_llama(), DType::f32, kernels_named(GetParam())};
  Tensor taught_{student_.context.state(), {2}, DType::f64};
  Tokens tokens_{2, 11, tiny_gpt2().vocab, 3};
};

TEST_P(TeachingTest, TheLossIsThatOfBothParts) {
  const double plain = loss(nullptr);
  const Teaching lesson = teaching(0.25F, 3);
  const double joint = loss(&lesson);
  ASSERT_EQ(parts().size(), 2U);
  EXPECT_DOUBLE_EQ(parts()[0], plain);
  EXPECT_GT(parts()[1], 0);
  EXPECT_NEAR(joint, 0.75 * parts()[0] + 0.25 * 9 * parts()[1], 1e-5 * joint);
}

TEST_P(TeachingTest, SampleLossesAreTheWholeLoss) {
  const Tensor samples(student_.context.state(), {2}, DType::f64);
  student_.run.sample_losses = samples.view();
  const Teaching lesson = teaching(0.5F, 2);
  const double joint = loss(&lesson);
  const auto each = student_.context.read<double>(samples.view());
  EXPECT_NEAR(each[0] + each[1], joint, 1e-9 * joint);
}

TEST_P(TeachingTest, GradientsAreDerivativesOfTheLoss) {
  const Teaching lesson = teaching(0.75F, 2);
  loss(&lesson);
  const std::vector<float> gradient = gradients();
  for (ParameterId id = 0; id < student_.store.count(); ++id) {
    const Parameter& parameter = student_.store[id];
    auto* const x = as<float>(student_.masters->value(id));
    const std::vector<float> start(x, x + parameter.elements());
    double slope = 0;
    std::vector<float> direction;
    for (std::int64_t i = 0; i < parameter.elements(); ++i) {
      direction.push_back(std::sin(static_cast<float>(3 * i + id)));
      slope += static_cast<double>(gradient[static_cast<std::size_t>(parameter.offset + i)]) *
               static_cast<double>(direction.back());
    }
    const auto at = [&](float distance) {
      for (std::size_t i = 0; i < start.size(); ++i) {
        x[i] = start[i] + distance * direction[i];
      }
      student_.masters->refresh_working_copies();
      return loss(&lesson);
    };
    const float h = 0x1p-9F;
    const double difference = (at(h) - at(-h)) / (2 * static_cast<double>(h));
    (void)at(0);
    EXPECT_NEAR(slope, difference, 2e-2 * std::abs(difference) + 2e-2) << parameter.name;
  }
}

TEST_P(TeachingTest, WithoutWeightNothingChanges) {
  const double plain = loss(nullptr, 0.125F);
  const std::vector<float> expected = gradients();
  const Teaching lesson = teaching(0, 2);
  EXPECT_DOUBLE_EQ(loss(&lesson, 0.125F), plain);
  EXPECT_EQ(gradients(), expected);
}

TEST_P(TeachingTest, AStudentIsItsOwnTeacher) {
  const Teaching lesson{student_.model, student_.store, 1, 2};
  EXPECT_NEAR(loss(&lesson), 0, 1e-4);
  EXPECT_NEAR(parts()[1], 0, 1e-5);
  for (const float each : gradients()) {
    ASSERT_NEAR(each, 0, 1e-5);
  }
}

TEST_P(TeachingTest, TheTeacherIsNotChanged) {
  const auto before = teacher_.context.read<float>(teacher_.store.working_copies());
  const Teaching lesson = teaching(0.5F, 2);
  loss(&lesson);
  EXPECT_EQ(teacher_.context.read<float>(teacher_.store.working_copies()), before);
}

INSTANTIATE_TEST_SUITE_P(Kernels, TeachingTest, testing::ValuesIn(kernel_tables()));

}  // namespace
}  // namespace trireme
