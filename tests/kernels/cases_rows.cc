#include "src/base/error.h"
#include "src/base/ignored_target.h"
#include "tests/kernels/cases.h"
#include "tests/kernels/tables.h"

namespace trireme::testing {
namespace {

struct RowShape {
  std::int64_t rows, columns;
};

constexpr RowShape kRowShapes[] = {{1, 1},     {1, 3},    {5, 17},  {33, 64},
                                   {300, 129}, {70, 768}, {2, 5000}};

Results run_column_sum(const RowShape& s, DType dtype, const Kernels& kernels, Stream& stream) {
  const Array x = Array::random(s.rows * s.columns, dtype, 1);
  Array sum(s.columns, DType::f32);
  kernels.column_sum(stream, {.m = s.rows, .n = s.columns, .x = x, .sum = sum});
  return {{"sum", sum}};
}

Results run_norm_forward(const RowShape& s, DType dtype, bool centred, bool residual,
                         const Kernels& kernels, Stream& stream) {
  Array x = Array::random(s.rows * s.columns, dtype, 1, 3);
  const Array other = Array::random(x.count(), dtype, 2);
  const Array weight = Array::random(s.columns, dtype, 3);
  const Array bias = Array::random(s.columns, dtype, 4);
  Array y(x.count(), dtype);
  Array mean(s.rows, DType::f32);
  Array rstd(s.rows, DType::f32);
  const NormForward p{.rows = s.rows,
                      .channels = s.columns,
                      .x = x,
                      .residual = residual ? other.view() : ConstView{},
                      .sum = residual ? x.view() : View{},
                      .weight = weight,
                      .bias = centred ? bias.view() : ConstView{},
                      .y = y,
                      .mean = centred ? mean.view() : View{},
                      .rstd = rstd};
  (centred ? kernels.layer_norm_forward : kernels.rms_norm_forward)(stream, p);
  return {{"sum", x}, {"y", y}, {"mean", mean}, {"rstd", rstd}};
}

Results run_norm_backward(const RowShape& s, DType dtype, bool centred, bool residual,
                          const Kernels& kernels, Stream& stream) {
  const Array x = Array::random(s.rows * s.columns, dtype, 1);
  Array dy = Array::random(x.count(), dtype, 2);
  const Array weight = Array::random(s.columns, dtype, 3);
  const Array mean = Array::random(s.rows, DType::f32, 4, 0.1);
  Array rstd(s.rows, DType::f32);
  for (std::int64_t r = 0; r < s.rows; ++r) {
    rstd.set(r, 0.5 + static_cast<double>(r % 7) / 7);
  }
  const Array skip = Array::random(x.count(), dtype, 5);
  Array dweight(s.columns, DType::f32);
  Array dbias(s.columns, DType::f32);
  const NormBackward p{.rows = s.rows,
                       .channels = s.columns,
                       .dy = dy,
                       .x = x,
                       .weight = weight,
                       .mean = centred ? mean.view() : ConstView{},
                       .rstd = rstd,
                       .dresidual = residual ? skip.view() : ConstView{},
                       .dx = dy,
                       .dweight = dweight,
                       .dbias = centred ? dbias.view() : View{}};
  (centred ? kernels.layer_norm_backward : kernels.rms_norm_backward)(stream, p);
  return {{"dx", dy}, {"dweight", dweight}, {"dbias", dbias}};
}

// Returns random targets, of which every third is ignored.
Array targets_of(std::int64_t rows, std::int64_t vocabulary) {
  Array targets = Array::ids(rows, vocabulary, 2);
  for (std::int64_t i = 2; i < rows; i += 3) {
    as<std::int32_t>(targets.view())[i] = kIgnoredTarget;
  }
  return targets;
}

// Logits vary around `centre`; large ones must not overflow. Their rows are `pitch` apart, and what
// lies between them must stay untouched.
Results run_cross_entropy(const RowShape& s, std::int64_t pitch, DType dtype, double centre,
                          bool forward_only, const LossTerms& terms, const Kernels& kernels,
                          Stream& stream) {
  Array logits = Array::random(s.rows * pitch, dtype, 1, 4);
  for (std::int64_t i = 0; i < logits.count(); ++i) {
    logits.set(i, logits[i] + centre);
  }
  const Array targets = targets_of(s.rows, s.columns);
  Array losses(s.rows, DType::f32);
  kernels.cross_entropy(stream, {.rows = s.rows,
                                 .vocabulary = s.columns,
                                 .pitch = pitch,
                                 .logits = logits,
                                 .targets = targets,
                                 .losses = losses,
                                 .scale = 0.125F,
                                 .forward_only = forward_only,
                                 .terms = terms});
  return {{"losses", losses}, {"logits", logits}};
}

// Divides the vocabulary into `parts` ranks and gathers their statistics. Returns the losses, which
// all ranks agree on, and the gradients of all parts.
Results run_cross_entropy_of_parts(const RowShape& s, DType dtype, std::int64_t parts,
                                   bool forward_only, const LossTerms& terms,
                                   const Kernels& kernels, Stream& stream) {
  const std::int64_t pitch = aligned_row(s.columns);
  const Array targets = targets_of(s.rows, s.columns * parts);
  const std::int64_t statistics_per_part = s.rows * kRowStatistics;
  Array statistics(parts * statistics_per_part, DType::f64);
  std::vector<Array> logits;
  for (std::int64_t p = 0; p < parts; ++p) {
    logits.push_back(Array::random(s.rows * pitch, dtype, static_cast<std::uint32_t>(p), 4));
    kernels.softmax_part(stream, {.rows = s.rows,
                                  .vocabulary = s.columns,
                                  .pitch = pitch,
                                  .first_id = p * s.columns,
                                  .logits = logits.back(),
                                  .targets = targets,
                                  .statistics = statistics.view().slice(p * statistics_per_part,
                                                                        statistics_per_part),
                                  .sum_logits = terms.label_smoothing > 0});
  }
  Results results;
  for (std::int64_t p = 0; p < parts; ++p) {
    Array losses(s.rows, DType::f32);
    Array& own = logits[static_cast<std::size_t>(p)];
    kernels.cross_entropy_of_parts(stream, {.own = {.rows = s.rows,
                                                    .vocabulary = s.columns,
                                                    .pitch = pitch,
                                                    .logits = own,
                                                    .targets = targets,
                                                    .losses = losses,
                                                    .scale = 0.125F,
                                                    .forward_only = forward_only,
                                                    .terms = terms},
                                            .first_id = p * s.columns,
                                            .parts = parts,
                                            .statistics = statistics,
                                            .whole_vocabulary = parts * s.columns});
    results.push_back({fmt::format("losses_{}", p), losses});
    results.push_back({fmt::format("logits_{}", p), own});
  }
  return results;
}

// The student's logits vary around `centre`, the teacher's around 0; rows are `pitch` apart.
Results run_distillation(const RowShape& s, std::int64_t pitch, DType dtype, double centre,
                         float temperature, bool forward_only, const Kernels& kernels,
                         Stream& stream) {
  Array logits = Array::random(s.rows * pitch, dtype, 1, 4);
  for (std::int64_t i = 0; i < logits.count(); ++i) {
    logits.set(i, logits[i] + centre);
  }
  Array teacher = Array::random(s.rows * pitch, dtype, 3, 4);
  const Array targets = targets_of(s.rows, s.columns);
  Array divergences(s.rows, DType::f32);
  kernels.distillation(stream, {.rows = s.rows,
                                .vocabulary = s.columns,
                                .pitch = pitch,
                                .logits = logits,
                                .teacher = teacher,
                                .targets = targets,
                                .divergences = divergences,
                                .temperature = temperature,
                                .scale = 0.125F,
                                .forward_only = forward_only});
  return {{"divergences", divergences}, {"teacher", teacher}, {"logits", logits}};
}

void add_norms(std::vector<Case>& cases, const RowShape& s, DType dtype) {
  for (const bool centred : {true, false}) {
    for (const bool residual : {true, false}) {
      const std::string what =
          fmt::format("{}{}_{}x{}_{}", centred ? "layer_norm" : "rms_norm",
                      residual ? "_residual" : "", s.rows, s.columns, dtype_word(dtype));
      // With a single channel, the variance consists of rounding errors only.
      if (s.columns > 1) {
        cases.push_back({"forward_" + what, [=](const Kernels& kernels, Stream& stream) {
                           return run_norm_forward(s, dtype, centred, residual, kernels, stream);
                         }});
      }
      cases.push_back({"backward_" + what, [=](const Kernels& kernels, Stream& stream) {
                         return run_norm_backward(s, dtype, centred, residual, kernels, stream);
                       }});
    }
  }
}

// Tries the plain cross entropy, each term alone, and both terms.
constexpr std::pair<const char*, LossTerms> kTerms[] = {
    {"", {}}, {"_smooth", {0.1F, 0}}, {"_z", {0, 0.01F}}, {"_smooth_z", {0.3F, 0.05F}}};

void add_losses_with_terms(std::vector<Case>& cases, DType dtype) {
  constexpr RowShape kLosses[] = {{1, 1}, {7, 257}, {3, 5003}};
  for (const auto& [name, terms] : kTerms) {
    for (const RowShape& s : kLosses) {
      for (const bool forward_only : {true, false}) {
        const std::string what = fmt::format("{}{}_{}x{}_{}", name, forward_only ? "_forward" : "",
                                             s.rows, s.columns, dtype_word(dtype));
        cases.push_back({"cross_entropy_terms" + what,
                         [=, terms = terms](const Kernels& kernels, Stream& stream) {
                           return run_cross_entropy(s, s.columns, dtype, 3, forward_only, terms,
                                                    kernels, stream);
                         },
                         {1e-5, 2e-6}});
        cases.push_back({"cross_entropy_of_parts_terms" + what,
                         [=, terms = terms](const Kernels& kernels, Stream& stream) {
                           return run_cross_entropy_of_parts(s, dtype, 2, forward_only, terms,
                                                             kernels, stream);
                         },
                         {1e-5, 2e-6}});
      }
    }
  }
}

void add_losses_of_parts(std::vector<Case>& cases, DType dtype) {
  constexpr RowShape kLosses[] = {{1, 1}, {7, 257}, {3, 5003}};
  for (const RowShape& s : kLosses) {
    for (const std::int64_t parts : {1, 2, 3}) {
      for (const bool forward_only : {true, false}) {
        cases.push_back(
            {fmt::format("cross_entropy_of_{}_parts{}_{}x{}_{}", parts,
                         forward_only ? "_forward" : "", s.rows, s.columns, dtype_word(dtype)),
             [=](const Kernels& kernels, Stream& stream) {
               return run_cross_entropy_of_parts(s, dtype, parts, forward_only, {}, kernels,
                                                 stream);
             },
             {1e-5, 2e-6}});
      }
    }
  }
}

void add_distillations(std::vector<Case>& cases, DType dtype) {
  constexpr RowShape kTaught[] = {{1, 1}, {3, 2}, {7, 257}, {65, 1003}, {3, 5003}};
  for (const RowShape& s : kTaught) {
    for (const float temperature : {0.25F, 1.0F, 4.0F}) {
      for (const double centre : {0.0, 3000.0}) {
        for (const bool forward_only : {true, false}) {
          cases.push_back({fmt::format("distillation{}_t{:.0f}_at{:.0f}_{}x{}_{}",
                                       forward_only ? "_forward" : "", temperature, centre, s.rows,
                                       s.columns, dtype_word(dtype)),
                           [=](const Kernels& kernels, Stream& stream) {
                             return run_distillation(s, s.columns, dtype, centre, temperature,
                                                     forward_only, kernels, stream);
                           },
                           {1e-5, 4e-6}});
        }
      }
    }
    cases.push_back(
        {fmt::format("distillation_gaps_{}x{}_{}", s.rows, s.columns, dtype_word(dtype)),
         [=](const Kernels& kernels, Stream& stream) {
           return run_distillation(s, aligned_row(s.columns + 1), dtype, 0, 2, false, kernels,
                                   stream);
         },
         {1e-5, 4e-6}});
  }
}

void add_losses(std::vector<Case>& cases, DType dtype) {
  constexpr RowShape kLosses[] = {{1, 1}, {3, 2}, {7, 257}, {65, 1003}, {3, 50257}};
  for (const RowShape& s : kLosses) {
    for (const auto& [place, centre] : {std::pair{"", 0.0}, {"_high", 3000.0}, {"_low", -3000.0}}) {
      for (const bool forward_only : {true, false}) {
        cases.push_back({fmt::format("cross_entropy{}{}_{}x{}_{}", forward_only ? "_forward" : "",
                                     place, s.rows, s.columns, dtype_word(dtype)),
                         [=, centre = centre](const Kernels& kernels, Stream& stream) {
                           return run_cross_entropy(s, s.columns, dtype, centre, forward_only, {},
                                                    kernels, stream);
                         },
                         {1e-5, 2e-6}});
      }
    }
    cases.push_back(
        {fmt::format("cross_entropy_gaps_{}x{}_{}", s.rows, s.columns, dtype_word(dtype)),
         [=](const Kernels& kernels, Stream& stream) {
           return run_cross_entropy(s, aligned_row(s.columns + 1), dtype, 0, false, {}, kernels,
                                    stream);
         },
         {1e-5, 2e-6}});
  }
}

}  // namespace

std::vector<Case> row_cases() {
  std::vector<Case> cases;
  for (const DType dtype : activation_types()) {
    for (const RowShape& s : kRowShapes) {
      cases.push_back({fmt::format("column_sum_{}x{}_{}", s.rows, s.columns, dtype_word(dtype)),
                       [=](const Kernels& kernels, Stream& stream) {
                         return run_column_sum(s, dtype, kernels, stream);
                       }});
      add_norms(cases, s, dtype);
    }
    add_losses(cases, dtype);
    add_losses_of_parts(cases, dtype);
    add_losses_with_terms(cases, dtype);
    add_distillations(cases, dtype);
  }
  return cases;
}

}  // namespace trireme::testing
