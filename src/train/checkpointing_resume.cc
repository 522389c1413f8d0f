// What a checkpoint must agree in before a run resumes from it, and what is told of it.
#include <numeric>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "io/checkpoint/fingerprint.h"
#include "src/base/units.h"
#include "src/train/checkpointing.h"
#include "src/train/run/fingerprint.h"

namespace trireme {

// The place in the data is counted in batches: of another size they would begin elsewhere.
void TrainingCheckpoints::check_samples(const TrainingCounters& counters,
                                        const CheckpointMeta& saved) const {
  const std::int64_t batch = parts_.config.train.global_batch;
  std::int64_t samples = 0;
  if (__builtin_mul_overflow(counters.batches(), batch, &samples) || samples != saved.samples) {
    throw ConfigError(fmt::format(
        "the checkpoint of step {} has seen {} samples, which are not {} batches of "
        "train.global_batch {}: go on with the batch that it was trained with, or begin a new run",
        saved.step, saved.samples, counters.batches(), batch));
  }
}

void TrainingCheckpoints::tell_resumed(const Resumed& resumed) const {
  if (parts_.world.rank() != 0) {
    return;
  }
  for (const std::string& why : resumed.skipped) {
    parts_.log.warning(fmt::format("skipped {}", why));
  }
  for (const std::string& damage : resumed.repairs) {
    parts_.log.warning(fmt::format("taken from another copy: {}", damage));
  }
  parts_.log.event("resumed", {{"step", resumed.manifest.meta.step},
                               {"generation", resumed.manifest.generation},
                               {"from_memory", resumed.from_memory},
                               {"bytes", resumed.bytes},
                               {"seconds", resumed.load.seconds}});
  parts_.log.info(fmt::format(
      "resumed from {}: {} in {}", resumed.source(),
      format_bytes(std::accumulate(resumed.bytes.begin(), resumed.bytes.end(), std::int64_t{0})),
      format_seconds(resumed.load.seconds)));
}

void TrainingCheckpoints::accept(const Manifest& manifest) const {
  const RunFingerprints& own = parts_.fingerprints;
  check_same_states(*manifest.meta.config, parts_.config);
  std::vector<std::string> allowed = fields_without_effect(*manifest.meta.config, *own.config);
  const std::vector<std::string>& named = parts_.config.checkpoint.allow_change;
  allowed.insert(allowed.end(), named.begin(), named.end());
  const std::vector<std::string> changed =
      differences(with_later_fields(*manifest.meta.config), *own.config, allowed);
  if (!changed.empty()) {
    throw ConfigError(fmt::format(
        "the checkpoint of step {} belongs to another run:\n  {}\nGo back to the old values, "
        "choose another checkpoint.dir, or accept a field with checkpoint.allow_change=[FIELD]",
        manifest.meta.step, fmt::join(changed, "\n  ")));
  }
  const std::vector<std::string> numerics = differences(*manifest.meta.numerics, *own.numerics);
  if (!numerics.empty() && parts_.world.rank() == 0) {
    parts_.log.warning(fmt::format(
        "this run computes in another way than the one that wrote step {}: the bits of an "
        "uninterrupted run are not promised\n  {}",
        manifest.meta.step, fmt::join(numerics, "\n  ")));
  }
}

}  // namespace trireme
