#include "src/interchange/logit_check.h"

#include <algorithm>
#include <cmath>
#include <new>

#include "io/checkpoint/workers.h"
#include "src/base/error.h"
#include "src/base/out_of_memory.h"
#include "src/base/philox.h"
#include "src/interchange/checkpoint_weights.h"
#include "src/nn/key_value_cache.h"
#include "src/nn/model_size.h"
#include "src/train/load_model.h"
#include "src/train/memory/available_memory.h"

namespace trireme {
namespace {

constexpr std::int64_t kMostPositions = 16;

// Returns tokens from all over the vocabulary, the same for every model of its size.
std::vector<std::int32_t> probe(const ModelConfig& config) {
  std::vector<std::int32_t> ids;
  for (std::int64_t i = 0; i < std::min(kMostPositions, config.context); ++i) {
    const std::uint64_t number = mix64(static_cast<std::uint64_t>(i) + 1);
    ids.push_back(static_cast<std::int32_t>(number % static_cast<std::uint64_t>(config.vocab)));
  }
  return ids;
}

// Returns whether a model in fp32, master weights and working copies, fits into memory.
bool fits_into_memory(const ModelConfig& config) {
  return parameter_count(config) * 9 < available_memory().bytes;
}

std::vector<double> logits_by_kernels(const std::filesystem::path& checkpoint,
                                      const std::vector<std::int32_t>& ids, const KeyOptions& keys,
                                      Weights which) {
  DeviceContext context(Device::cpu(), available_processors());
  const LoadedModel loaded = load_model(checkpoint, context, DType::f32, which, keys);
  Run run{.context = context, .parameters = *loaded.parameters, .dropout = {}};
  KeyValueCache cache(context, loaded.config, std::ssize(ids), DType::f32);
  std::vector<double> logits;
  for (const std::int32_t& id : ids) {
    const Tensor row = loaded.model->decode({&id, 1, DType::i32}, cache, run);
    const std::vector<float> values = context.read<float>(row.view());
    logits.insert(logits.end(), values.begin(), values.end());
  }
  return logits;
}

std::vector<double> logits_of_stored(const std::filesystem::path& checkpoint,
                                     const std::vector<std::int32_t>& ids, const KeyOptions& keys,
                                     Weights which) {
  std::vector<std::string> none;
  StepFolder step = find_step(checkpoint, none);
  unlock(*step.manifest, step.path, keys);
  std::optional<StepFolder> base = open_base(step, keys);
  CheckpointWeights weights(std::move(step), which, std::move(base));
  const ReadWeight read = [&](const std::string& name) { return weights.read(name); };
  return plain_logits(weights.model(), read, ids, available_processors());
}

LogitDifference difference_of(const std::vector<double>& own, const std::vector<double>& foreign,
                              std::int64_t vocab) {
  LogitDifference result;
  result.positions = std::ssize(foreign) / vocab;
  double errors = 0;
  double squares = 0;
  for (std::size_t i = 0; i < foreign.size(); ++i) {
    const double error = std::abs(own[i] - foreign[i]);
    result.largest = std::isnan(error) ? error : std::max(result.largest, error);
    result.largest_logit = std::max(result.largest_logit, std::abs(foreign[i]));
    errors += error * error;
    squares += foreign[i] * foreign[i];
  }
  result.relative = squares > 0 ? std::sqrt(errors / squares) : std::sqrt(errors);
  for (std::int64_t row = 0; row < result.positions; ++row) {
    const auto most = [&](const std::vector<double>& logits) {
      const auto first = logits.begin() + row * vocab;
      return std::max_element(first, first + vocab) - first;
    };
    result.same_choice = result.same_choice && most(own) == most(foreign);
  }
  return result;
}

std::string no_memory_to_compare() {
  return fmt::format("{} (the logits of both models were being compared; nothing was kept)",
                     kOutOfMemoryForFiles);
}

}  // namespace

LogitDifference compare_logits(const ModelConfig& config, const ForeignWeights& foreign,
                               const std::filesystem::path& checkpoint, const KeyOptions& keys,
                               Weights which) {
  const ForeignLogits logits = [&](std::span<const std::int32_t> ids) {
    return plain_logits(foreign.model.value_or(config), foreign.read, ids, available_processors(),
                        foreign.pairs);
  };
  return compare_logits(config, logits, checkpoint, keys, which);
}

LogitDifference compare_logits(const ModelConfig& config, const ForeignLogits& foreign,
                               const std::filesystem::path& checkpoint, const KeyOptions& keys,
                               Weights which) {
  try {
    const std::vector<std::int32_t> ids = probe(config);
    const std::vector<double> theirs = foreign(ids);
    const bool by_kernels = fits_into_memory(config);
    const std::vector<double> own = by_kernels ? logits_by_kernels(checkpoint, ids, keys, which)
                                               : logits_of_stored(checkpoint, ids, keys, which);
    LogitDifference result = difference_of(own, theirs, config.vocab);
    result.by_kernels = by_kernels;
    return result;
  } catch (const ResourceError&) {  // its advice is for training
    throw ResourceError(no_memory_to_compare());
  } catch (const std::bad_alloc&) {
    throw ResourceError(no_memory_to_compare());
  }
}

void check_difference(const LogitDifference& difference, double most, const std::string& what) {
  if (!(difference.relative <= most)) {
    throw DataError(fmt::format(
        "{}: its {}, a relative difference of {:.2g}, above {:.2g}: this is a defect of this "
        "program or of the machine, and nothing was kept",
        what, describe(difference), difference.relative, most));
  }
}

std::string describe(const LogitDifference& difference) {
  return fmt::format("logits at {} positions differ by at most {:.2g} (largest logit {:.3g})",
                     difference.positions, difference.largest, difference.largest_logit);
}

}  // namespace trireme
