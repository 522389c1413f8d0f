#include "src/train/numerics/self_check.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/compute/kernel_choice.h"
#include "src/train/numerics/bench.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::vector<const Kernels*> tables() {
  std::vector<const Kernels*> all;
  for (const char* name : {"reference", "baseline", "avx2", "avx512"}) {
    try {
      all.push_back(&kernels_named(name));
    } catch (const ConfigError&) {
      std::fprintf(stderr, "skipped: this processor lacks %s\n", name);
    }
  }
  return all;
}

KernelShapes gpt2(DType dtype) {
  KernelShapes s;
  s.dtype = dtype;
  s.batch = 2;
  s.time = 96;
  s.channels = 96;
  s.heads = s.kv_heads = 3;
  s.head_dim = 32;
  s.ffn = 384;
  s.vocabulary = 1003;
  s.dropout = 0.1F;
  return s;
}

KernelShapes llama(DType dtype) {
  KernelShapes s = gpt2(dtype);
  s.llama = true;
  s.heads = 4;
  s.kv_heads = 2;
  s.head_dim = 24;
  s.ffn = 264;
  s.shares_vocabulary = true;
  s.dropout = 0;
  return s;
}

TEST(SelfCheck, FindsNothingInAnyTable) {
  for (const Kernels* table : tables()) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      for (KernelShapes shapes : {gpt2(dtype), llama(dtype)}) {
        for (const int threads : {1, 3}) {
          DeviceContext context(*table, threads);
          EXPECT_NO_THROW(check_kernels(context, shapes)) << table->name;
        }
        shapes.time = 1;
        shapes.batch = 1;
        DeviceContext context(*table, 2);
        EXPECT_NO_THROW(check_kernels(context, shapes)) << table->name << " on one token";
      }
    }
  }
}

// Options that overflow do so in the reference too.
TEST(SelfCheck, DoesNotCallEqualOverflowsADifference) {
  const std::vector<float> same = {INFINITY, -INFINITY, NAN, 1};
  const std::vector<float> other = {INFINITY, INFINITY, NAN, 1};
  const auto compare = [](const std::vector<float>& found, const std::vector<float>& expected) {
    DeviceContext context(kernels_named("reference"), 1);
    const KernelShapes shapes = gpt2(DType::f32);
    CheckBench bench(context, shapes);
    const auto view = [](const std::vector<float>& v) {
      return ConstView{v.data(), std::ssize(v), DType::f32};
    };
    bench.compare("some kernel", view(found), view(expected), 1);
  };
  EXPECT_NO_THROW(compare(same, same));
  EXPECT_THROW(compare(same, other), DeviceError);
  EXPECT_THROW(compare({1, NAN}, {1, 1}), DeviceError);
  EXPECT_THROW(compare({1, 1}, {1, NAN}), DeviceError);
}

// Switches on all options that have kernels of their own.
KernelShapes with_options(KernelShapes shapes) {
  shapes.attention_dropout = 0.2F;
  shapes.loss_terms = {0.1F, 1e-3F};
  shapes.temperature = 2;
  shapes.sgd = true;
  shapes.averages = true;
  shapes.keeps_zeros = true;
  shapes.scaled = true;
  shapes.attention_scale = 0.25F;
  shapes.alibi = shapes.swiglu = !shapes.llama;
  return shapes;
}

TEST(SelfCheck, FindsNothingInKernelsOfOptions) {
  for (const Kernels* table : tables()) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      for (const KernelShapes& shapes : {gpt2(dtype), llama(dtype)}) {
        DeviceContext context(*table, 2);
        EXPECT_NO_THROW(check_kernels(context, with_options(shapes))) << table->name;
      }
    }
  }
}

// Divergences at high temperatures are smaller than the rounding of what they are made of.
TEST(SelfCheck, FindsNothingAtHighTemperatures) {
  for (const Kernels* table : tables()) {
    for (const float temperature : {6.0F, 20.0F, 1000.0F}) {
      for (const std::int64_t vocabulary : {17, 193}) {
        KernelShapes shapes = llama(DType::f32);
        shapes.temperature = temperature;
        shapes.vocabulary = vocabulary;
        DeviceContext context(*table, 2);
        EXPECT_NO_THROW(check_kernels(context, shapes)) << table->name << ", " << temperature;
      }
    }
  }
}

// The check cuts wide layers. These are the sizes of a model of 7e9 parameters.
TEST(SelfCheck, TakesWideLayers) {
  KernelShapes shapes = llama(DType::bf16);
  shapes.channels = 4096;
  shapes.heads = shapes.kv_heads = 32;
  shapes.head_dim = 128;
  shapes.ffn = 11008;
  shapes.vocabulary = 32000;
  shapes.time = 2048;
  DeviceContext context(*tables().back(), 2);
  EXPECT_NO_THROW(check_kernels(context, shapes));
}

// Each of these functions is a kernel that errs, everywhere or in one element.
const Kernels& right() { return *tables().back(); }

void wrong_matmul(Stream& stream, const Matmul& p) {
  right().matmul(stream, p);
  if (p.transpose_a) {
    as<float>(p.c)[0] += 1;
  }
}
// Leaves the last rows as they were, as if a thread had not run.
void incomplete_matmul(Stream& stream, const Matmul& p) {
  std::vector<char> before(static_cast<std::size_t>(p.c.bytes() / 2));
  char* const second = static_cast<char*>(p.c.data) + p.c.bytes() - p.c.bytes() / 2;
  std::copy_n(second, before.size(), before.data());
  right().matmul(stream, p);
  std::copy_n(before.data(), before.size(), second);
}
void wrong_gelu(Stream& stream, View y, ConstView x) {
  right().gelu_forward(stream, y, x);
  as<float>(y)[y.count - 1] *= 1.01F;
}
void wrong_attention(Stream& stream, const AttentionBackward& p) {
  right().attention_backward(stream, p);
  as<float>(p.dv)[3] = std::numeric_limits<float>::quiet_NaN();
}
void wrong_adamw(Stream& stream, const AdamW& p) {
  AdamW late = p;
  late.step = p.step + 1;
  right().adamw(stream, late);
}
void wrong_norm(Stream& stream, const NormBackward& p) {
  right().layer_norm_backward(stream, p);
  as<float>(p.dweight)[1] = 0;
}
void wrong_loss(Stream& stream, const CrossEntropy& p) {
  right().cross_entropy(stream, p);
  as<float>(p.losses)[0] += 0.01F;
}
void no_sum(Stream&, View, ConstView) {}
void wrong_sgd(Stream& stream, const Sgd& p) {
  right().sgd(stream, p);
  as<float>(p.buffer)[p.buffer.count - 1] += 0.01F;
}
void no_average(Stream&, const MovingAverage&) {}
void keep_nothing(Stream&, View, ConstView) {}
void attention_of_another_mask(Stream& stream, const AttentionForward& p) {
  AttentionForward other = p;
  other.dropout.layer += 1;
  right().attention_forward(stream, other);
}
void loss_without_terms(Stream& stream, const CrossEntropy& p) {
  CrossEntropy plain = p;
  plain.terms = {};
  right().cross_entropy(stream, plain);
}

void colder_distillation(Stream& stream, const Distillation& p) {
  Distillation colder = p;
  colder.temperature = 1;
  right().distillation(stream, colder);
}

void attention_of_other_slopes(Stream& stream, const AttentionForward& p) {
  AttentionForward other = p;
  other.slopes = {};
  right().attention_forward(stream, other);
}
void scale_by_more(Stream& stream, View x, float factor) {
  right().scale(stream, x, factor * 1.01F);
}
void swiglu_of_the_other_half(Stream& stream, View y, ConstView gate, ConstView up) {
  right().swiglu_forward(stream, y, up, gate);
}

TEST(SelfCheck, NamesTheKernelThatErrs) {
  const auto message = [&](auto Kernels::*entry, auto wrong) {
    Kernels kernels = right();
    kernels.*entry = wrong;
    DeviceContext context(kernels, 2);
    return message_of<DeviceError>([&] { check_kernels(context, gpt2(DType::f32)); });
  };
  EXPECT_THAT(message(&Kernels::matmul, wrong_matmul),
              AllOf(HasSubstr("matmul (attention input, weight gradient)"), HasSubstr("element 0"),
                    HasSubstr("tolerance"), HasSubstr("2 threads"), HasSubstr(" on "),
                    HasSubstr(std::string(right().name))));
  EXPECT_THAT(message(&Kernels::matmul, incomplete_matmul),
              HasSubstr("matmul (attention input, forward)"));
  EXPECT_THAT(message(&Kernels::gelu_forward, wrong_gelu), HasSubstr("gelu_forward"));
  EXPECT_THAT(message(&Kernels::attention_backward, wrong_attention),
              HasSubstr("attention_backward"));
  EXPECT_THAT(message(&Kernels::adamw, wrong_adamw), HasSubstr("adamw (weights)"));
  EXPECT_THAT(message(&Kernels::layer_norm_backward, wrong_norm),
              HasSubstr("layer_norm_backward (weight)"));
  EXPECT_THAT(message(&Kernels::cross_entropy, wrong_loss), HasSubstr("cross_entropy"));
  EXPECT_THAT(message(&Kernels::add, no_sum), HasSubstr("add of"));
}

TEST(SelfCheck, NamesTheKernelOfAnOptionThatErrs) {
  const auto expect_found = [&](auto Kernels::*entry, auto wrong, const std::string& name) {
    Kernels kernels = right();
    kernels.*entry = wrong;
    DeviceContext context(kernels, 2);
    const KernelShapes plain = gpt2(DType::f32);
    EXPECT_THAT(message_of<DeviceError>([&] { check_kernels(context, with_options(plain)); }),
                HasSubstr(name));
    EXPECT_NO_THROW(check_kernels(context, plain)) << name;
  };
  expect_found(&Kernels::sgd, wrong_sgd, "sgd (momentum)");
  expect_found(&Kernels::moving_average, no_average, "moving_average");
  expect_found(&Kernels::zero_where_zero, keep_nothing, "zero_where_zero");
  expect_found(&Kernels::attention_forward, attention_of_another_mask, "attention_forward");
  expect_found(&Kernels::attention_forward, attention_of_other_slopes, "attention_forward");
  expect_found(&Kernels::scale, scale_by_more, "scale");
  expect_found(&Kernels::swiglu_forward, swiglu_of_the_other_half, "swiglu_forward");
  expect_found(&Kernels::cross_entropy, loss_without_terms, "cross_entropy");
  expect_found(&Kernels::distillation, colder_distillation, "distillation");
}

}  // namespace
}  // namespace trireme
