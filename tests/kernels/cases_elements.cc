#include "src/base/error.h"
#include "tests/kernels/cases.h"
#include "tests/kernels/tables.h"

namespace trireme::testing {
namespace {

constexpr std::int64_t kCounts[] = {1, 15, 64, 1001, 70001};
constexpr Tolerance kExact{0, 0};

// Returns normally distributed numbers, preceded by some that overflow in a careless formula.
Array with_extremes(std::int64_t count, DType dtype, std::uint32_t seed) {
  Array x = Array::random(count, dtype, seed, 3);
  const double extremes[] = {0, -0.0, 20, -20, 1e4, -1e4, 1e-30, -1e-30};
  for (std::int64_t i = 0; i < 8 && count > 64; ++i) {
    x.set(i, extremes[i]);
  }
  return x;
}

Results run_activations(std::int64_t n, DType dtype, const Kernels& kernels, Stream& stream) {
  const Array x = with_extremes(n, dtype, 1);
  const Array up = Array::random(n, dtype, 2);
  const Array dy = Array::random(n, dtype, 3);
  Array gelu(n, dtype);
  Array dgelu(n, dtype);
  Array swiglu(n, dtype);
  Array dgate(n, dtype);
  Array dup(n, dtype);
  kernels.gelu_forward(stream, gelu, x);
  kernels.gelu_backward(stream, dgelu, dy, x);
  kernels.swiglu_forward(stream, swiglu, x, up);
  kernels.swiglu_backward(stream, dgate, dup, dy, x, up);
  return {{"gelu", gelu}, {"dgelu", dgelu}, {"swiglu", swiglu}, {"dgate", dgate}, {"dup", dup}};
}

Results run_dropout(std::int64_t n, DType dtype, float probability, const Kernels& kernels,
                    Stream& stream) {
  const Array x = Array::random(3 * n, dtype, 1);
  Array y(3 * n, dtype);
  kernels.dropout(stream, {.batch = 3,
                           .elements_per_sample = n,
                           .first_sample = 5,
                           .seed = 0x123456789ABCDEF0,
                           .step = 77,
                           .site = 9,
                           .probability = probability,
                           .x = x,
                           .y = y});
  return {{"y", y}};
}

// Returns turns of the decay: none, a few at odd places, or more than one launch of a GPU takes.
std::vector<std::int64_t> decay_turns(std::int64_t n) {
  const std::int64_t distance = n <= 64 ? n : (n <= 1001 ? 333 : 85);
  std::vector<std::int64_t> turns;
  for (std::int64_t at = distance; at < n; at += distance) {
    turns.push_back(at);
  }
  return turns;
}

// copy_type is the type of the working copy; with f32 there is none.
Results run_adamw(std::int64_t n, DType copy_type, std::int64_t step, const Kernels& kernels,
                  Stream& stream) {
  Array value = Array::random(n, DType::f32, 1);
  Array m = Array::random(n, DType::f32, 2, 0.1);
  Array v = Array::random(n, DType::f32, 3, 0.1);
  for (std::int64_t i = 0; i < n; ++i) {
    v.set(i, v[i] * v[i]);
  }
  const Array gradient = Array::random(n, DType::f32, 4);
  const std::vector<std::int64_t> turns = decay_turns(n);
  Array copy(n, copy_type);
  kernels.adamw(stream, {.value = value,
                         .m = m,
                         .v = v,
                         .gradient = gradient,
                         .compute = copy_type != DType::f32 ? copy.view() : View{},
                         .step = step,
                         .lr = 0.01F,
                         .weight_decay = 0.1F,
                         .turns = turns,
                         .gradient_scale = 0.37F});
  return {{"value", value}, {"m", m}, {"v", v}, {"compute", copy}};
}

Results run_sgd(std::int64_t n, DType copy_type, bool nesterov, const Kernels& kernels,
                Stream& stream) {
  Array value = Array::random(n, DType::f32, 1);
  Array buffer = Array::random(n, DType::f32, 2, 0.1);
  const Array gradient = Array::random(n, DType::f32, 4);
  const std::vector<std::int64_t> turns = decay_turns(n);
  Array copy(n, copy_type);
  kernels.sgd(stream, {.value = value,
                       .buffer = buffer,
                       .gradient = gradient,
                       .compute = copy_type != DType::f32 ? copy.view() : View{},
                       .lr = 0.01F,
                       .nesterov = nesterov,
                       .weight_decay = 0.1F,
                       .turns = turns,
                       .gradient_scale = 0.37F});
  Array average = Array::random(n, DType::f32, 5);
  kernels.moving_average(stream, {.average = average, .value = value, .decay = 0.99F});
  return {{"value", value}, {"buffer", buffer}, {"compute", copy}, {"average", average}};
}

Results run_plain(std::int64_t n, DType half_type, const Kernels& kernels, Stream& stream) {
  const Array x = with_extremes(n, DType::f32, 1);
  Array half(n, half_type);
  Array back(n, DType::f32);
  Array copy(n, DType::f32);
  Array sum = Array::random(n, DType::f32, 2);
  Array threes(n, DType::f32);
  Array halves(n, half_type);
  kernels.cast(stream, half, x);
  kernels.cast(stream, back, half);
  kernels.cast(stream, copy, x);
  kernels.add(stream, sum, x);
  kernels.fill(stream, threes, 3.14159F);
  kernels.fill(stream, halves, 3.14159F);
  return {{"half", half}, {"back", back},     {"copy", copy},
          {"sum", sum},   {"threes", threes}, {"halves", halves}};
}

Results run_add_chain(std::int64_t n, int addends, const Kernels& kernels, Stream& stream) {
  Array sum = Array::random(n, DType::f32, 7);
  std::vector<Array> arrays;
  std::vector<ConstView> views;
  for (int j = 0; j < addends; ++j) {
    arrays.push_back(Array::random(n, DType::f32, static_cast<std::uint64_t>(j + 1)));
    views.emplace_back(arrays.back().view());
  }
  kernels.add_chain(stream, sum, views.data(), addends);
  return {{"sum", sum}};
}

// Combines with y and without it. The result may take the place of x.
Results run_combine(std::int64_t n, const Kernels& kernels, Stream& stream) {
  Array x = Array::random(n, DType::f32, 1);
  const Array y = Array::random(n, DType::f32, 2);
  Array sum(n, DType::f32);
  kernels.combine(stream, {.result = sum, .a = 0.5F, .x = x, .b = -1.25F, .y = y});
  kernels.combine(stream, {.result = x, .a = 3, .x = x});
  return {{"sum", sum}, {"product", x}};
}

Results run_scale(std::int64_t n, DType dtype, const Kernels& kernels, Stream& stream) {
  Array x = Array::random(n, dtype, 1);
  kernels.scale(stream, x, -0.375F);
  return {{"x", x}};
}

// The other half of the elements keeps its bits.
Results run_zero_where_zero(std::int64_t n, const Kernels& kernels, Stream& stream) {
  Array x = Array::random(n, DType::f32, 1);
  Array y = Array::random(n, DType::f32, 2);
  for (std::int64_t i = 0; i < n; i += 2) {
    y.set(i, i % 4 == 0 ? 0.0 : -0.0);
  }
  kernels.zero_where_zero(stream, x, y);
  return {{"x", x}};
}

Results run_normalize(std::int64_t n, const Kernels& kernels, Stream& stream) {
  Array x = Array::random(n, DType::f32, 1);
  const std::vector<double> sums = {2.5, 0.25, 13.5};
  kernels.normalize(stream, x, {sums.data(), std::ssize(sums), DType::f64}, 1e-7F);
  return {{"x", x}};
}

Results run_sums_of_squares(std::int64_t n, const Kernels& kernels, Stream& stream) {
  const Array x = Array::random(n, DType::f32, 1);
  std::vector<double> sums(static_cast<std::size_t>((n + kSumBlock - 1) / kSumBlock), -1);
  kernels.sums_of_squares(stream, {sums.data(), std::ssize(sums), DType::f64}, x);
  // The result holds both halves of each double, so that its bits can be compared.
  Array result(2 * static_cast<std::int64_t>(sums.size()), DType::f32);
  for (std::size_t b = 0; b < sums.size(); ++b) {
    const auto at = static_cast<std::int64_t>(2 * b);
    result.set(at, sums[b]);
    result.set(at + 1, sums[b] - static_cast<double>(static_cast<float>(sums[b])));
  }
  return {{"sums", result}};
}

struct EmbeddingShape {
  std::int64_t batch, time, channels, vocabulary, positions;
};

Results run_embedding(const EmbeddingShape& s, DType dtype, const Kernels& kernels,
                      Stream& stream) {
  const Array ids = Array::ids(s.batch * s.time, s.vocabulary, 1);
  const Array token = Array::random(s.vocabulary * s.channels, dtype, 2);
  const Array position = Array::random((s.positions + 2) * s.channels, dtype, 3);
  Array out(s.batch * s.time * s.channels, dtype);
  kernels.embedding_forward(stream, {.batch = s.batch,
                                     .time = s.time,
                                     .channels = s.channels,
                                     .first_position = s.positions == 0 ? 0 : 2,
                                     .out = out,
                                     .ids = ids,
                                     .token = token,
                                     .position = s.positions == 0 ? ConstView{} : position.view()});
  return {{"out", out}};
}

Results run_embedding_backward(const EmbeddingShape& s, DType dtype, const Kernels& kernels,
                               Stream& stream) {
  const Array ids = Array::ids(s.batch * s.time, s.vocabulary, 1);
  const Array dout = Array::random(s.batch * s.time * s.channels, dtype, 4);
  Array dtoken = Array::random(s.vocabulary * s.channels, DType::f32, 5);
  Array dposition = Array::random(s.positions * s.channels, DType::f32, 6);
  kernels.embedding_backward(stream, {.batch = s.batch,
                                      .time = s.time,
                                      .channels = s.channels,
                                      .dout = dout,
                                      .ids = ids,
                                      .dtoken = dtoken,
                                      .dposition = s.positions == 0 ? View{} : dposition.view()});
  return {{"dtoken", dtoken}, {"dposition", dposition}};
}

struct RopeShape {
  std::int64_t batch, time, heads, head_dim, first_position;
};

Results run_rope(const RopeShape& s, DType dtype, bool backward, const Kernels& kernels,
                 Stream& stream) {
  const std::int64_t stride = s.heads * s.head_dim + 5;
  Array x = Array::random(s.batch * s.time * stride, dtype, 1);
  Array frequency(s.head_dim / 2, DType::f32);
  for (std::int64_t j = 0; j < s.head_dim / 2; ++j) {
    frequency.set(
        j, std::pow(10000.0, -2.0 * static_cast<double>(j) / static_cast<double>(s.head_dim)));
  }
  kernels.rope(stream, {.batch = s.batch,
                        .time = s.time,
                        .heads = s.heads,
                        .head_dim = s.head_dim,
                        .first_position = s.first_position,
                        .stride = stride,
                        .x = x,
                        .inverse_frequency = frequency,
                        .backward = backward});
  return {{"x", x}};
}

void add_embeddings(std::vector<Case>& cases, DType dtype) {
  constexpr EmbeddingShape kShapes[] = {
      {1, 1, 1, 1, 1}, {2, 7, 17, 5, 9}, {3, 130, 64, 257, 200}, {2, 64, 200, 3000, 0}};
  for (const EmbeddingShape& s : kShapes) {
    const std::string what = fmt::format("{}x{}x{}_v{}_{}", s.batch, s.time, s.channels,
                                         s.vocabulary, dtype_word(dtype));
    cases.push_back({"embedding_forward_" + what,
                     [=](const Kernels& kernels, Stream& stream) {
                       return run_embedding(s, dtype, kernels, stream);
                     },
                     kExact, kExact});
    cases.push_back({"embedding_backward_" + what, [=](const Kernels& kernels, Stream& stream) {
                       return run_embedding_backward(s, dtype, kernels, stream);
                     }});
  }
}

void add_ropes(std::vector<Case>& cases, DType dtype) {
  constexpr RopeShape kShapes[] = {
      {1, 1, 1, 2, 0}, {2, 9, 3, 10, 4}, {2, 65, 3, 64, 0}, {1, 33, 2, 160, 100000}};
  for (const RopeShape& s : kShapes) {
    for (const bool backward : {false, true}) {
      cases.push_back(
          {fmt::format("rope{}_{}x{}x{}x{}_at{}_{}", backward ? "_backward" : "", s.batch, s.time,
                       s.heads, s.head_dim, s.first_position, dtype_word(dtype)),
           [=](const Kernels& kernels, Stream& stream) {
             return run_rope(s, dtype, backward, kernels, stream);
           }});
    }
  }
}

void add_counted(std::vector<Case>& cases, std::int64_t n) {
  for (const DType type : half_types()) {
    cases.push_back({fmt::format("plain_{}_{}", n, dtype_word(type)),
                     [=](const Kernels& kernels, Stream& stream) {
                       return run_plain(n, type, kernels, stream);
                     },
                     kExact, kExact});
  }
  for (const DType dtype : activation_types()) {
    cases.push_back({fmt::format("activations_{}_{}", n, dtype_word(dtype)),
                     [=](const Kernels& kernels, Stream& stream) {
                       return run_activations(n, dtype, kernels, stream);
                     }});
    for (const float probability : {0.0F, 0.1F, 0.5F, 1.0F}) {
      cases.push_back({fmt::format("dropout_{}_{}_{}", n, static_cast<int>(probability * 10),
                                   dtype_word(dtype)),
                       [=](const Kernels& kernels, Stream& stream) {
                         return run_dropout(n, dtype, probability, kernels, stream);
                       },
                       kExact, kExact});
    }
  }
  for (const DType copy_type : activation_types()) {
    const std::string copy = copy_type == DType::f32 ? "" : "_copy_" + dtype_word(copy_type);
    for (const bool nesterov : {true, false}) {
      cases.push_back({fmt::format("sgd_{}{}{}", n, nesterov ? "_nesterov" : "", copy),
                       [=](const Kernels& kernels, Stream& stream) {
                         return run_sgd(n, copy_type, nesterov, kernels, stream);
                       }});
    }
    for (const std::int64_t step : {1, 1000}) {
      cases.push_back({fmt::format("adamw_{}_step{}{}", n, step, copy),
                       [=](const Kernels& kernels, Stream& stream) {
                         return run_adamw(n, copy_type, step, kernels, stream);
                       }});
    }
  }
}

}  // namespace

std::vector<Case> element_cases() {
  std::vector<Case> cases;
  for (const std::int64_t n : kCounts) {
    add_counted(cases, n);
  }
  for (const int addends : {1, 2, 3, kMaxAddends}) {
    for (const std::int64_t n : {1, 100, 65537}) {
      cases.push_back({fmt::format("add_chain_{}_of_{}", addends, n),
                       [=](const Kernels& kernels, Stream& stream) {
                         return run_add_chain(n, addends, kernels, stream);
                       },
                       kExact, kExact});
    }
  }
  for (const std::int64_t n : {1, 100, 65537}) {
    cases.push_back(
        {fmt::format("combine_{}", n),
         [=](const Kernels& kernels, Stream& stream) { return run_combine(n, kernels, stream); },
         {1e-6, 1e-7}});
    for (const DType dtype : activation_types()) {
      cases.push_back({fmt::format("scale_{}_{}", n, dtype_word(dtype)),
                       [=](const Kernels& kernels, Stream& stream) {
                         return run_scale(n, dtype, kernels, stream);
                       },
                       kExact, kExact});
    }
    cases.push_back({fmt::format("zero_where_zero_{}", n),
                     [=](const Kernels& kernels, Stream& stream) {
                       return run_zero_where_zero(n, kernels, stream);
                     },
                     kExact, kExact});
    cases.push_back(
        {fmt::format("normalize_{}", n),
         [=](const Kernels& kernels, Stream& stream) { return run_normalize(n, kernels, stream); },
         {1e-6, 1e-7}});
  }
  for (const std::int64_t n : {1, 100, 65536, 300001}) {
    cases.push_back({fmt::format("sums_of_squares_{}", n),
                     [=](const Kernels& kernels, Stream& stream) {
                       return run_sums_of_squares(n, kernels, stream);
                     },
                     {1e-7, 1e-12}});
  }
  for (const DType dtype : activation_types()) {
    add_embeddings(cases, dtype);
    add_ropes(cases, dtype);
  }
  return cases;
}

}  // namespace trireme::testing
