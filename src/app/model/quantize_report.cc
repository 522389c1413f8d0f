#include "src/app/model/quantize_report.h"

#include <algorithm>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "src/base/median.h"
#include "src/base/stopwatch.h"
#include "src/base/units.h"
#include "src/nn/key_value_cache.h"

namespace trireme {
namespace {

constexpr int kTurns = 5;
constexpr std::int64_t kTokensPerTurn = 16;

// Decoding is one model that generates tokens.
class Decoding {
 public:
  Decoding(const LoadedModel& loaded, DeviceContext& context)
      : loaded_(loaded),
        context_(context),
        run_{.context = context, .parameters = *loaded.parameters, .dropout = {}},
        cache_(context, loaded.config, std::min(kTokensPerTurn, loaded.config.context),
               loaded.compute) {
    run_.packed = loaded.packed.get();
  }

  // Returns the tokens per second of a new sequence. Which tokens they are does not matter.
  double turn() {
    cache_.truncate(0);
    const Stopwatch watch;
    for (std::int64_t i = 0; i < cache_.capacity(); ++i) {
      const auto id = static_cast<std::int32_t>(i % loaded_.config.vocab);
      context_.read<float>(loaded_.model->decode({&id, 1, DType::i32}, cache_, run_).view());
    }
    return static_cast<double>(cache_.capacity()) / watch.seconds();
  }

 private:
  const LoadedModel& loaded_;
  DeviceContext& context_;
  Run run_;
  KeyValueCache cache_;
};

std::int64_t bytes_of(const LoadedModel& loaded) {
  return loaded.parameters->working_bytes() +
         (loaded.packed == nullptr ? 0 : loaded.packed->bytes());
}

nlohmann::ordered_json figures_json(const WeightsFigures& figures) {
  return {{"type", figures.type},
          {"loss", figures.loss},
          {"bytes", figures.bytes},
          {"tokens_per_s", figures.tokens_per_s}};
}

}  // namespace

QuantizeReport compare_decoding(const LoadedModel& packed, const LoadedModel& plain,
                                DeviceContext& context) {
  QuantizeReport report;
  report.kernels = packed_kernels(context.kernels()).name;
  report.packed.bytes = bytes_of(packed);
  report.plain.bytes = bytes_of(plain);
  report.plain.type = plain.compute == DType::bf16 ? "bf16" : "fp32";
  Decoding decodings[2] = {{packed, context}, {plain, context}};
  std::vector<double> rates[2];
  for (int turn = 0; turn <= kTurns; ++turn) {
    for (int i = 0; i < 2; ++i) {
      const double rate = decodings[i].turn();
      if (turn > 0) {  // the first one warms up
        rates[i].push_back(rate);
      }
    }
  }
  report.packed.tokens_per_s = median(rates[0]);
  report.plain.tokens_per_s = median(rates[1]);
  return report;
}

nlohmann::ordered_json quantize_json(const QuantizeReport& report) {
  return {{"kernels", report.kernels},
          {"packed", figures_json(report.packed)},
          {"plain", figures_json(report.plain)}};
}

void print_quantize_report(const QuantizeReport& report) {
  const WeightsFigures& packed = report.packed;
  const WeightsFigures& plain = report.plain;
  fmt::print("weights  loss        memory       decoding\n");
  for (const WeightsFigures* const each : {&plain, &packed}) {
    fmt::print("{:<7}  {:<10.6f}  {:<11}  {:.1f} tokens/s\n", each->type, each->loss,
               format_bytes(each->bytes), each->tokens_per_s);
  }
  fmt::print("{} by {}: loss {:+.6f}, memory x {:.2f}, decoding x {:.2f} ({})\n", packed.type,
             plain.type, packed.loss - plain.loss,
             static_cast<double>(packed.bytes) / static_cast<double>(plain.bytes),
             packed.tokens_per_s / plain.tokens_per_s, report.kernels);
}

}  // namespace trireme
