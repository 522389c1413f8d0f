// Tests of attention that go beyond comparing every entry with reference: block edges, strides,
// grouped heads, caches, and equal bits in every schedule and for both ways to divide backward.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/compute/kernel_choice.h"
#include "tests/kernels/array.h"
#include "tests/kernels/tables.h"

namespace trireme {
namespace {

using testing::Array;

struct AttentionCase {
  std::int64_t batch, time, kv_time, heads, kv_heads, depth;
  DType type;
  float dropout = 0;
  bool alibi = false;
  float scale = 0;
  std::string name() const {
    return fmt::format("B{} T{} of {} H{}/{} D{} {} dropout {}{} scale {}", batch, time, kv_time,
                       heads, kv_heads, depth, dtype_name(type), dropout, alibi ? " ALiBi" : "",
                       scale);
  }
};

// q, k and v of a token are in one row, as in the layers.
struct Pass {
  explicit Pass(const AttentionCase& c)
      : shape(c),
        row((c.heads + 2 * c.kv_heads) * c.depth),
        cache_rows(c.kv_time == c.time ? c.time : c.kv_time + 3),
        qkv(Array::uniform(c.batch * cache_rows * row, c.type, 1, 2)),
        q(Array::uniform(c.batch * c.time * row, c.type, 1, 2)),
        out(c.batch * c.time * c.heads * c.depth, c.type),
        lse(c.batch * c.heads * c.time, DType::f32),
        dout(Array::uniform(out.count(), c.type, 2, 2)),
        dqkv(qkv.count(), c.type),
        slopes(c.heads, DType::f32) {
    for (std::int64_t head = 0; head < c.heads; ++head) {
      slopes.set(head, std::exp2(-1.5 * static_cast<double>(head + 1)));
    }
  }

  AttentionForward forward() {
    AttentionForward p;
    p.batch = shape.batch;
    p.time = shape.time;
    p.kv_time = shape.kv_time;
    p.heads = shape.heads;
    p.kv_heads = shape.kv_heads;
    p.head_dim = shape.depth;
    p.q = shape.time == shape.kv_time ? qkv.view() : q.view();
    p.k = keys(qkv);
    p.v = values(qkv);
    p.q_stride = p.kv_stride = row;
    p.kv_batch_rows = cache_rows;
    p.out = out.view();
    p.lse = lse.view();
    p.dropout = {shape.dropout, 0x123456789ABCDEF, 7, 3, 5, 11};
    p.scale = shape.scale;
    p.slopes = shape.alibi ? ConstView(slopes.view()) : ConstView();
    return p;
  }
  void run(const Kernels& kernels, Stream& stream) {
    kernels.attention_forward(stream, forward());
    if (shape.time == shape.kv_time) {
      kernels.attention_backward(stream, {.forward = forward(),
                                          .dout = dout.view(),
                                          .dq = dqkv.view(),
                                          .dk = keys(dqkv),
                                          .dv = values(dqkv)});
    }
  }

  // These return the rows from the first key or the first value on, with the row stride of q.
  View keys(Array& rows) const { return tail(rows, shape.heads * shape.depth); }
  View values(Array& rows) const {
    return tail(rows, (shape.heads + shape.kv_heads) * shape.depth);
  }
  static View tail(Array& rows, std::int64_t first) {
    return rows.view().slice(first, rows.count() - first);
  }

  AttentionCase shape;
  std::int64_t row, cache_rows;
  Array qkv, q, out, lse, dout, dqkv, slopes;
};

// Returns the largest difference divided by the largest value.
double distance(const Array& a, const Array& b) {
  double apart = 0;
  double size = 1e-30;
  for (std::int64_t i = 0; i < a.count(); ++i) {
    const double difference = std::abs(a[i] - b[i]);
    apart = std::isnan(difference) ? INFINITY : std::max(apart, difference);
    size = std::max(size, std::abs(b[i]));
  }
  return apart / size;
}

void expect_near_reference(const AttentionCase& shape) {
  Stream stream = testing::test_stream(2);
  Pass want(shape);
  want.run(kernels_named("reference"), stream);
  const double room = shape.type == DType::f32 ? 1e-5 : shape.type == DType::bf16 ? 0.015 : 0.002;
  for (const Kernels* table : testing::tables_under_test()) {
    Pass got(shape);
    got.run(*table, stream);
    const std::string where = std::string(table->name) + " " + shape.name();
    EXPECT_LT(distance(got.out, want.out), room) << where;
    EXPECT_LT(distance(got.lse, want.lse), room) << where;
    EXPECT_LT(distance(got.dqkv, want.dqkv), room) << where;
  }
}

TEST(Attention, AgreesAtTheEdgesOfBlocks) {
  for (const DType type : {DType::f32, DType::bf16}) {
    for (const std::int64_t time : {8, 15, 16, 63, 64, 65, 127, 129, 255, 257, 320}) {
      expect_near_reference({1, time, time, 2, 1, 16, type});
    }
  }
}

TEST(Attention, AgreesForAnyHeadDimension) {
  for (const DType type : testing::activation_types()) {
    for (const std::int64_t depth : {1, 2, 3, 7, 8, 20, 40, 48, 64, 65, 80, 96, 128, 136}) {
      expect_near_reference({2, 70, 70, 3, 3, depth, type});
    }
  }
}

TEST(Attention, AgreesForGroupedHeads) {
  for (const DType type : testing::activation_types()) {
    expect_near_reference({2, 90, 90, 6, 2, 24, type});
    expect_near_reference({1, 90, 90, 4, 1, 32, type});
  }
}

TEST(Attention, DropsTheSameWeightsEverywhere) {
  for (const DType type : {DType::f32, DType::bf16}) {
    for (const std::int64_t time : {3, 7, 8, 63, 64, 65, 130, 257, 320}) {
      expect_near_reference({2, time, time, 4, 2, 16, type, 0.3F});
    }
    expect_near_reference({1, 70, 70, 3, 3, 20, type, 0.9F});
    expect_near_reference({1, 300, 300, 2, 1, 64, type, 1e-3F});
  }
  for (const DType type : testing::half_types()) {
    for (const std::int64_t depth : {32, 64, 128, 136}) {
      expect_near_reference({1, 67, 67, 2, 1, depth, type, 0.3F});
    }
  }
}

TEST(Attention, ReadsACacheOfKeys) {
  for (const DType type : {DType::f32, DType::bf16}) {
    expect_near_reference({2, 1, 1, 4, 2, 16, type});
    expect_near_reference({2, 1, 300, 4, 2, 16, type});
    expect_near_reference({1, 7, 77, 3, 3, 20, type});
    expect_near_reference({2, 30, 301, 4, 2, 64, type});
  }
}

TEST(Attention, BiasesDistantKeys) {
  for (const DType type : testing::activation_types()) {
    for (const std::int64_t time : {5, 8, 63, 64, 65, 129, 257}) {
      expect_near_reference({2, time, time, 3, 1, 16, type, 0, true});
    }
    for (const std::int64_t depth : {7, 20, 64, 80, 128, 136, 256}) {
      expect_near_reference({1, 70, 70, 4, 2, depth, type, 0, true});
      expect_near_reference({1, 70, 70, 2, 2, depth, type, 0.3F, true});
    }
    expect_near_reference({2, 1, 300, 4, 2, 16, type, 0, true});
    expect_near_reference({1, 7, 77, 3, 3, 20, type, 0, true});
    expect_near_reference({2, 30, 301, 4, 2, 64, type, 0, true});
  }
}

TEST(Attention, TakesAnotherScale) {
  for (const DType type : testing::activation_types()) {
    for (const std::int64_t depth : {16, 64, 128}) {
      for (const bool alibi : {false, true}) {
        expect_near_reference({1, 70, 70, 2, 1, depth, type, 0, alibi, 0.02F});
        expect_near_reference({1, 2, 70, 2, 1, depth, type, 0, alibi, 0.02F});
      }
    }
  }
}

// The reference against the formula: two queries that see two and three keys, of one channel.
TEST(Attention, ReferenceHasAlibisFormula) {
  const Kernels& reference = kernels_named("reference");
  Array q(2, DType::f32);
  Array k(3, DType::f32);
  Array v(3, DType::f32);
  Array out(2, DType::f32);
  Array lse(2, DType::f32);
  Array slopes(1, DType::f32);
  q.set(0, 0.75);
  q.set(1, -1.5);
  for (std::int64_t j = 0; j < 3; ++j) {
    k.set(j, 0.5 * static_cast<double>(j + 1));
    v.set(j, static_cast<double>(j * j + 1));
  }
  slopes.set(0, 0.25);
  AttentionForward p;
  p.batch = p.heads = p.kv_heads = p.head_dim = p.q_stride = p.kv_stride = 1;
  p.time = 2;
  p.kv_time = p.kv_batch_rows = 3;
  p.q = q;
  p.k = k;
  p.v = v;
  p.out = out;
  p.lse = lse;
  p.scale = 0.5F;
  p.slopes = slopes;
  Stream stream = testing::test_stream(1);
  reference.attention_forward(stream, p);
  for (std::int64_t t = 0; t < 2; ++t) {
    double sum = 0;
    double mixed = 0;
    for (std::int64_t j = 0; j <= t + 1; ++j) {
      const double weight = std::exp(0.5 * q[t] * k[j] + 0.25 * static_cast<double>(j - (t + 1)));
      sum += weight;
      mixed += weight * v[j];
    }
    EXPECT_NEAR(out[t], mixed / sum, 1e-6);
    EXPECT_NEAR(lse[t], std::log(sum), 1e-6);
  }
}

TEST(Attention, BitsDoNotDependOnTheSchedule) {
  for (const Kernels* table : testing::tables_under_test()) {
    for (const DType type : {DType::f32, DType::bf16}) {
      // On Hopper, heads of 64 dimensions are a matter of warpgroups, and those of 32 of warps.
      const std::vector<AttentionCase> shapes = {{1, 300, 300, 3, 3, 64, type},
                                                 {2, 130, 130, 4, 2, 20, type},
                                                 {1, 3, 400, 4, 2, 32, type},
                                                 {1, 150, 150, 4, 2, 32, type},
                                                 {1, 200, 200, 4, 2, 64, type, 0, true}};
      for (const AttentionCase& shape : shapes) {
        std::unique_ptr<Pass> first;
        testing::each_schedule([&](const std::string& schedule, Stream& stream) {
          auto pass = std::make_unique<Pass>(shape);
          pass->run(*table, stream);
          if (first == nullptr) {
            first = std::move(pass);
            return;
          }
          EXPECT_TRUE(pass->out.same_bits(first->out) && pass->lse.same_bits(first->lse) &&
                      pass->dqkv.same_bits(first->dqkv))
              << table->name << " " << shape.name() << " with " << schedule;
        });
      }
    }
  }
}

// A diverged run must remain visible.
TEST(Attention, PassesNaNOn) {
  for (const Kernels* table : testing::tables_under_test()) {
    Pass pass({1, 70, 70, 1, 1, 16, DType::f32});
    const float nan = std::nanf("");
    std::memcpy(static_cast<float*>(pass.qkv.view().data) + 40 * pass.row, &nan, 4);
    Stream stream = testing::test_stream(1);
    pass.run(*table, stream);
    EXPECT_TRUE(std::isnan(pass.out[40 * 16])) << table->name;
    EXPECT_FALSE(std::isnan(pass.out[39 * 16])) << table->name;
    EXPECT_TRUE(std::isnan(pass.dqkv[16])) << table->name;
  }
}

}  // namespace
}  // namespace trireme
