// The datasets of a run: how they are opened, and the losses on the validation sets.
#include <algorithm>
#include <limits>

#include "io/checkpoint/step_keys.h"
#include "src/base/units.h"
#include "src/train/parts/training_parts.h"
#include "src/train/start/open_dataset.h"

namespace trireme {

DatasetKeys TrainingParts::dataset_keys() const {
  return {host.keys == nullptr ? nullptr : &host.keys->shared(),
          config.encryption.accept_plain_data, host.access};
}

// The label is bound as early as it is known, so that the logs of a start that fails are labelled.
TrainingData TrainingParts::open_data(const std::optional<StartPoint>& start) const {
  TrainingData opened = open_training_data(config, world, dataset_keys());
  CheckpointLabel label(host.access, world, config.checkpoint_dir(), kUnlabelled);
  label.join(opened.used());
  bind_label(start, label.value());
  return opened;
}

void TrainingParts::bind_label(const std::optional<StartPoint>& start,
                               const std::optional<Label>& label) const {
  if (host.bind_label && (!start || start->is_replay())) {
    host.bind_label(label);
  }
}

void TrainingParts::open_validation_sets() {
  const std::vector<EvaluationSet>& sets = config.data.validation;
  if (sets.empty()) {
    return;
  }
  enter("start", config.deadline.start);
  std::vector<UsedDataset> used;
  std::size_t shards = data.shards();
  for (const EvaluationSet& set : sets) {
    validation.push_back(open_validation_set(set, shards));
    if (const std::optional<Dataset>& opened = validation.back()) {
      shards += opened->manifest().shards.size();
      used.push_back(
          {set.key(sets.size()), set.path, opened->manifest_sha256(), opened->manifest().label});
    }
  }
  checkpoints->opened_validation(used);
}

// If a validation set is unusable, a run that starts from step 0 is refused. One that has been
// resumed continues without it, because its weights are worth more, unless the configuration is
// wrong.
std::optional<Dataset> TrainingParts::open_validation_set(const EvaluationSet& set,
                                                          std::size_t other_shards) {
  const std::string key = set.key(config.data.validation.size());
  try {
    Dataset opened = open_validation(config, set, data[0], world, dataset_keys(), other_shards);
    const std::int64_t samples = opened.samples(config.data.sequence);
    if (world.rank() == 0 && samples < config.train.eval_samples) {
      host.log.info(fmt::format("evaluations use all {} of {} (train.eval_samples {})",
                                counted(samples, "sample"), key, config.train.eval_samples));
    }
    choices.prepare_evaluations(std::min(samples, config.train.eval_samples));
    return opened;
  } catch (const ConfigError&) {
    throw;
  } catch (const Error& error) {
    if (counters.step == 0 ||
        (error.exit_code() != ExitCode::bad_data && error.exit_code() != ExitCode::not_found &&
         error.exit_code() != ExitCode::io)) {
      throw;
    }
    if (world.rank() == 0) {
      host.log.warning(
          fmt::format("cannot use {}; the run continues without evaluations of it, and its "
                      "validation loss is null: {}",
                      key, error.what()));
    }
    return std::nullopt;
  }
}

std::vector<double> TrainingParts::validation_losses(
    const std::function<void(const std::string&)>& warn) {
  std::vector<double> losses;
  for (const std::optional<Dataset>& set : validation) {
    double loss = std::numeric_limits<double>::quiet_NaN();
    const auto failed = [&](const Error& error) {
      if (world.rank() == 0) {
        warn(error.what());
      }
    };
    try {
      if (set) {
        loss = engine.evaluate(
            *set, {config.data.sequence, config.train.micro_batch, config.train.eval_samples});
      }
    } catch (const DataError& error) {
      failed(error);
    } catch (const IoError& error) {
      failed(error);
    }
    losses.push_back(loss);
  }
  return losses;
}

}  // namespace trireme
