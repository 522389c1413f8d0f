// Tests of the CUDA kernels that have no counterpart on the CPU.
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "src/device/cuda/cuda_queue.h"
#include "src/device/cuda_device.h"
#include "src/kernels/cuda/algorithm_check.h"
#include "src/kernels/cuda/product_kernels.h"
#include "src/kernels/cuda/scratch.h"
#include "src/kernels/mirrored/mirrored_kernels.h"
#include "tests/kernels/cases.h"
#include "tests/kernels/tables.h"

namespace trireme::testing {
namespace {

std::int64_t digest_of(const Kernels& table, ConstView bytes) {
  Stream stream = test_stream(1);
  std::int64_t digest = 0;
  table.digest(stream, {&digest, 1, DType::i64}, bytes);
  return digest;
}

// Ranks compare digests of arrays that need not lie alike in memory.
TEST(Digest, DoesNotDependOnAlignment) {
  for (const std::int64_t count : {1, 3, 4, 7, 8, 9, 1000, 300001}) {
    const Array x = Array::random(count, DType::bf16, 1);
    EXPECT_EQ(digest_of(mirrored_kernels(Placement::aligned), x),
              digest_of(mirrored_kernels(Placement::as_on_host), x));
  }
}

TEST(Digest, DependsOnTheOrderAndTheNumberOfBytes) {
  const Kernels& table = mirrored_kernels(Placement::aligned);
  Array x = Array::random(64, DType::f32, 1);
  const std::int64_t before = digest_of(table, x);
  EXPECT_NE(digest_of(table, ConstView(x).slice(0, 63)), before);
  const double first = x[0];
  x.set(0, x[2]);
  x.set(2, first);
  EXPECT_NE(digest_of(table, x), before);
  Array zeros(64, DType::f32);
  EXPECT_NE(digest_of(table, zeros), digest_of(table, ConstView(zeros).slice(0, 62)));
}

struct Batch {
  std::int64_t rows;
  std::int64_t channels;
  std::int64_t vocabulary;  // of the device, which holds the ids from 2 on
};

// Adds rows to the gradients of their ids, every third one to that of the same id, and expects the
// bits of sums in the order of the rows. Some ids are not held.
void expect_sums_in_order(const Batch& batch, DType dtype) {
  Array ids = Array::ids(batch.rows, batch.vocabulary + 4, 1);
  auto* const id = as<std::int32_t>(ids.view());
  for (std::int64_t row = 0; row < batch.rows; row += 3) {
    id[row] = static_cast<std::int32_t>(batch.vocabulary / 2 + 2);
  }
  const Array dout = Array::random(batch.rows * batch.channels, dtype, 2);
  const Array before = Array::random(batch.vocabulary * batch.channels, DType::f32, 3);
  std::vector<float> expected(as<float>(before.view()), as<float>(before.view()) + before.count());
  for (std::int64_t row = 0; row < batch.rows; ++row) {
    const std::int64_t at = id[row] - 2;
    for (std::int64_t i = 0; at >= 0 && at < batch.vocabulary && i < batch.channels; ++i) {
      expected[static_cast<std::size_t>(at * batch.channels + i)] +=
          static_cast<float>(dout[row * batch.channels + i]);
    }
  }
  each_schedule([&](const std::string& schedule, Stream& stream) {
    Array dtoken = before;
    mirrored_kernels(Placement::aligned)
        .embedding_backward(stream, {.batch = 1,
                                     .time = batch.rows,
                                     .channels = batch.channels,
                                     .dout = dout,
                                     .ids = ids,
                                     .dtoken = dtoken,
                                     .partial = true,
                                     .first_id = 2});
    const std::vector<float> sums(as<float>(dtoken.view()),
                                  as<float>(dtoken.view()) + dtoken.count());
    EXPECT_EQ(sums, expected) << schedule;
  });
}

// Ids have one row, several or hundreds; channels fill a part of a warp, or several ones.
TEST(Embedding, AddsTheRowsOfAnIdInOrder) {
  for (const DType dtype : activation_types()) {
    expect_sums_in_order({1501, 8, 100}, dtype);
    expect_sums_in_order({701, 328, 40}, dtype);
    expect_sums_in_order({333, 3, 1}, dtype);
    expect_sums_in_order({31, 8, 5}, dtype);
  }
}

// Their ids have two digits of nine bits, and three.
TEST(Embedding, SortsIdsOfLargeVocabularies) {
  expect_sums_in_order({2100, 1, 1 << 18}, DType::f32);
  expect_sums_in_order({1100, 1, (1 << 18) - 1}, DType::f32);
}

struct DroppedPart {
  std::int64_t per_sample;
  std::int64_t first;
  std::int64_t count;
};

// Parts of samples whose elements come in groups of eight, and others. In place, so that an element
// that two threads took would differ.
TEST(Dropout, DropsWhatTheReferenceDrops) {
  constexpr DroppedPart kParts[] = {{4104, 0, 3 * 4104}, {4104, 8, 4104},  {4104, 4096, 4112},
                                    {4104, 4104, 8},     {4101, 0, 8202},  {4104, 4, 4104},
                                    {4104, 8200, 4105},  {24, 16, 24 * 5}, {16, 0, 16 * 70000}};
  for (const DroppedPart& part : kParts) {
    for (const DType dtype : activation_types()) {
      const Array x = Array::uniform(part.count, dtype, 1, 1);
      const auto result = [&](const Kernels& kernels) {
        Array y = x;
        Stream stream = test_stream(1);
        kernels.dropout(stream, {.batch = (part.first + part.count - 1) / part.per_sample + 1,
                                 .elements_per_sample = part.per_sample,
                                 .first_sample = 5,
                                 .seed = 0x123456789ABCDEF0,
                                 .step = 77,
                                 .site = 9,
                                 .probability = 0.3F,
                                 .x = y,
                                 .y = y,
                                 .first_element = part.first});
        return y;
      };
      EXPECT_TRUE(result(kernels_named("reference"))
                      .same_bits(result(mirrored_kernels(Placement::aligned))))
          << part.per_sample << ' ' << part.first << ' ' << part.count;
    }
  }
}

// Each block takes several rows, and the last block fewer.
void expect_sums_of_many_rows(std::int64_t channels) {
  constexpr std::int64_t kRows = 1101;
  Stream stream = test_stream(1);
  const Array x = Array::random(kRows * channels, DType::f32, 1);
  const Array dy = Array::random(kRows * channels, DType::f32, 2);
  const Array weight = Array::random(channels, DType::f32, 3);
  const Array mean = Array::random(kRows, DType::f32, 4, 0.1);
  const Array rstd = Array::uniform(kRows, DType::f32, 5, 1);
  const auto gradients = [&](const Kernels& kernels) {
    Array dx(kRows * channels, DType::f32);
    Array dweight(channels, DType::f32);
    Array dbias(channels, DType::f32);
    kernels.layer_norm_backward(stream, {.rows = kRows,
                                         .channels = channels,
                                         .dy = dy,
                                         .x = x,
                                         .weight = weight,
                                         .mean = mean,
                                         .rstd = rstd,
                                         .dx = dx,
                                         .dweight = dweight,
                                         .dbias = dbias});
    return std::pair(dweight, dbias);
  };
  const auto expected = gradients(kernels_named("reference"));
  const auto result = gradients(mirrored_kernels(Placement::aligned));
  for (std::int64_t channel = 0; channel < channels; ++channel) {
    EXPECT_NEAR(result.first[channel], expected.first[channel], 1e-4) << channels;
    EXPECT_NEAR(result.second[channel], expected.second[channel], 1e-4);
  }
}

// Rows that are aligned are copied ahead, and others are read twice.
TEST(NormBackward, AddsManyRows) {
  expect_sums_of_many_rows(6);
  expect_sums_of_many_rows(8);
}

// The sums of chunks of rows are added in a second pass.
TEST(ColumnSum, AddsManyRows) {
  constexpr std::int64_t kRows = 9000;
  Stream stream = test_stream(1);
  const Array x = Array::random(kRows * 3, DType::f32, 1);
  Array sum(3, DType::f32);
  mirrored_kernels(Placement::aligned).column_sum(stream, {.m = kRows, .n = 3, .x = x, .sum = sum});
  for (std::int64_t column = 0; column < 3; ++column) {
    double expected = 0;
    for (std::int64_t row = 0; row < kRows; ++row) {
      expected += x[row * 3 + column];
    }
    EXPECT_NEAR(sum[column], expected, 1e-3);
  }
}

// There are more elements than the tile that one thread adds while the others fetch the next.
TEST(Sum, AddsManyElementsInOrder) {
  const Array x = Array::random(9001, DType::f32, 1);
  double expected = 0;
  for (std::int64_t i = 0; i < x.count(); ++i) {
    expected += x[i];
  }
  each_schedule([&](const std::string& schedule, Stream& stream) {
    double total = -1;
    mirrored_kernels(Placement::aligned).sum(stream, {&total, 1, DType::f64}, x);
    EXPECT_EQ(total, expected) << schedule;
  });
}

cuda::ProductKind product_kind(DType c_type) {
  return {.m = 5,
          .n = 300,
          .k = 1000,
          .type = DType::bf16,
          .c_type = c_type,
          .alignment_a = 2,
          .alignment_b = 256,
          .alignment_c = 4};
}

View result_of(const cuda::ProductKind& kind, const cuda::ProductOperands& at) {
  return {at.c, kind.m * kind.n, kind.c_type, {DeviceKind::cuda, 0}};
}

// An "algorithm" that sets all sums to what sums of ones would be does not read its operands.
TEST(AlgorithmCheck, FindsLostEndsOfSums) {
  cuda::TrialMemory memory;
  for (const DType c_type : {DType::f32, DType::bf16}) {
    const auto verdict =
        cuda::check_algorithm(memory, product_kind(c_type),
                              [&](const cuda::ProductKind& kind, const cuda::ProductOperands& at) {
                                EXPECT_EQ(kind.n, cuda::kCheckedSide);
                                cuda::fill_with(memory.stream(), result_of(kind, at), 1000);
                                return CUBLAS_STATUS_SUCCESS;
                              });
    EXPECT_EQ(verdict, cuda::AlgorithmVerdict::wrong);
  }
}

TEST(AlgorithmCheck, AcceptsExactSums) {
  cuda::TrialMemory memory;
  int calls = 0;
  const auto verdict = cuda::check_algorithm(
      memory, product_kind(DType::f32),
      [&](const cuda::ProductKind& kind, const cuda::ProductOperands& at) {
        cuda::fill_with(memory.stream(), result_of(kind, at), ++calls == 1 ? 1000 : 64);
        return CUBLAS_STATUS_SUCCESS;
      });
  EXPECT_EQ(verdict, cuda::AlgorithmVerdict::exact);
}

// Recomputation repeats GELU alone, and must find the same bits.
TEST(Product, HasTheBitsOfGeluAfterIt) {
  for (const DType dtype : activation_types()) {
    const Array a = Array::random(24 * 32, dtype, 1);
    const Array b = Array::random(32 * 40, dtype, 2);
    Array aux(24 * 40, dtype);
    Array fused(24 * 40, dtype);
    Array repeated(24 * 40, dtype);
    Stream stream = test_stream(1);
    const Kernels& table = mirrored_kernels(Placement::aligned);
    table.matmul(stream, {.m = 24,
                          .n = 40,
                          .k = 32,
                          .a = a,
                          .b = b,
                          .c = fused,
                          .aux = aux,
                          .epilogue = Epilogue::gelu});
    table.gelu_forward(stream, repeated, aux);
    EXPECT_TRUE(repeated.same_bits(fused));
  }
}

// An area grows, and kernels that are still running keep the old one.
TEST(Scratch, GrowsAndKeepsOldAreas) {
  constexpr std::int64_t kBytes = std::int64_t{80} << 20;
  Stream on_device = test_stream(1);
  const cudaStream_t stream = cuda::cuda_stream(on_device);
  cuda::Scratch& scratch = cuda::cuda_scratch(on_device);
  void* const before = scratch.take(1);
  void* const after = scratch.take(kBytes);
  EXPECT_NE(after, before);
  EXPECT_EQ(scratch.take(1), after);
  cuda::fill_with(stream, {after, kBytes / 4, DType::f32, {DeviceKind::cuda, 0}}, 1);
  cuda::fill_with(stream, {before, 1, DType::f32, {DeviceKind::cuda, 0}}, 1);
  on_device.synchronize();
}

// A queue frees its scratch memory, and another queue has its own.
TEST(Scratch, LivesAsLongAsItsQueue) {
  constexpr std::int64_t kBytes = std::int64_t{40} << 20;
  const auto free_bytes = [] { return cuda::device_facts(0).free_bytes; };
  const std::int64_t before = free_bytes();
  {
    Stream first({DeviceKind::cuda, 0}, 1, cuda::make_queue(0));
    Stream second({DeviceKind::cuda, 0}, 1, cuda::make_queue(0));
    EXPECT_NE(cuda::cuda_scratch(first).take(kBytes), cuda::cuda_scratch(second).take(kBytes));
    EXPECT_LE(free_bytes(), before - 2 * kBytes);
  }
  EXPECT_EQ(free_bytes(), before);
}

// Each of these kernels needs more scratch memory than a stream has at first. The simulated device
// finds writes behind its end.
TEST(Scratch, HoldsWhatKernelsNeed) {
  // Each stream has scratch memory of its own, which has not grown yet.
  const auto fresh = [] { return Stream({DeviceKind::cuda, 0}, 1, cuda::make_queue(0)); };
  const Kernels& table = mirrored_kernels(Placement::aligned);

  constexpr std::int64_t kRows = 513;
  constexpr std::int64_t kChannels = 40;
  const Array x = Array::random(kRows * kChannels, DType::f32, 1);
  const Array ones = Array::random(kRows, DType::f32, 2);
  Array dx(x.count(), DType::f32);
  Array sums(2 * kChannels, DType::f32);
  Stream of_norm = fresh();
  table.layer_norm_backward(of_norm, {.rows = kRows,
                                      .channels = kChannels,
                                      .dy = x,
                                      .x = x,
                                      .weight = ConstView(x).slice(0, kChannels),
                                      .mean = ones,
                                      .rstd = ones,
                                      .dx = dx,
                                      .dweight = sums.view().slice(0, kChannels),
                                      .dbias = sums.view().slice(kChannels, kChannels)});

  const Array tall(8192 * 140, DType::bf16);
  Array column_sums(140, DType::f32);
  Stream of_sum = fresh();
  table.column_sum(of_sum, {.m = 8192, .n = 140, .x = tall, .sum = column_sums});

  constexpr std::int64_t kTokens = 8200;
  constexpr std::int64_t kIds = 1000;  // more than one pass of the sort tells apart
  const Array ids = Array::ids(kTokens, kIds, 3);
  const Array dout(kTokens, DType::f32);
  Array dtoken(kIds, DType::f32);
  Stream of_embedding = fresh();
  table.embedding_backward(
      of_embedding,
      {.batch = 1, .time = kTokens, .channels = 1, .dout = dout, .ids = ids, .dtoken = dtoken});
}

// The sum is stored in bf16. Recomputation normalizes the stored sum, which must give the same
// bits.
TEST(NormForward, NormalizesTheSumThatItStores) {
  constexpr std::int64_t kRows = 7;
  constexpr std::int64_t kChannels = 96;
  Stream stream = test_stream(1);
  const Kernels& table = mirrored_kernels(Placement::aligned);
  const Array x = Array::random(kRows * kChannels, DType::bf16, 1);
  const Array residual = Array::random(x.count(), DType::bf16, 2);
  const Array weight = Array::random(2 * kChannels, DType::bf16, 3);
  Array sum(x.count(), DType::bf16);
  Array fused(x.count(), DType::bf16);
  Array again(x.count(), DType::bf16);
  Array moments(4 * kRows, DType::f32);
  const auto part = [&](std::int64_t i) { return moments.view().slice(i * kRows, kRows); };
  NormForward p{.rows = kRows,
                .channels = kChannels,
                .x = x,
                .residual = residual,
                .sum = sum,
                .weight = ConstView(weight).slice(0, kChannels),
                .bias = ConstView(weight).slice(kChannels, kChannels),
                .y = fused,
                .mean = part(0),
                .rstd = part(1)};
  table.layer_norm_forward(stream, p);
  p.x = sum;
  p.residual = {};
  p.sum = {};
  p.y = again;
  p.mean = part(2);
  p.rstd = part(3);
  table.layer_norm_forward(stream, p);
  EXPECT_TRUE(again.same_bits(fused));
  for (std::int64_t i = 0; i < 2 * kRows; ++i) {
    EXPECT_EQ(moments[i], moments[2 * kRows + i]);
  }
}

// The library may refuse a small product, but not the whole one.
TEST(AlgorithmCheck, TriesTheWholeProductAfterTheSmallOne) {
  cuda::TrialMemory memory;
  std::vector<std::int64_t> columns;
  const auto verdict = cuda::check_algorithm(memory, product_kind(DType::f32),
                                             [&](const cuda::ProductKind& kind, const auto&) {
                                               columns.push_back(kind.n);
                                               return CUBLAS_STATUS_NOT_SUPPORTED;
                                             });
  EXPECT_EQ(verdict, cuda::AlgorithmVerdict::unsupported);
  EXPECT_EQ(columns, (std::vector<std::int64_t>{256, 300}));
}

}  // namespace
}  // namespace trireme::testing
