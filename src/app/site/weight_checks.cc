#include "src/app/site/weight_checks.h"

#include <algorithm>
#include <functional>
#include <memory>

#include "io/data/dataset.h"
#include "mpi/agreement.h"
#include "src/base/error.h"
#include "src/train/saving/initial_weights.h"
#include "src/train/saving/teacher_weights.h"
#include "src/train/start/startup.h"
#include "src/train/text/step_tokenizer.h"

namespace trireme {
namespace {

// Returns whether an earlier start has finished the run, so that another one ends at once.
bool has_nothing_to_do(const RunConfig& config, Communicator& world) {
  return !run_on_root(world, [&]() -> std::string {
            return is_finished(config) ? "yes" : "";
          }).empty();
}

// Returns whether a start with this configuration reads checkpoint.init_from: with frozen weights
// always, otherwise unless it resumes.
bool reads_first_weights(const RunConfig& config, Communicator& world) {
  if (config.checkpoint.init_from.empty() || config.model.has_frozen()) {
    return !config.checkpoint.init_from.empty();
  }
  const std::string resumes = run_on_root(world, [&]() -> std::string {
    const std::vector<StepFolder> steps = list_steps(config.checkpoint_dir());
    const bool has_one = std::any_of(steps.begin(), steps.end(), [](const StepFolder& step) {
      return step.manifest.has_value();
    });
    return has_one ? "yes" : "";
  });
  return resumes.empty();
}

// Returns the tokenizer of the training data on rank 0. It is not known elsewhere, nor if the data
// cannot be used, which LaunchChecks reports.
TokenizerIdentity tokenizer_of_data(const RunConfig& config, Communicator& world) {
  if (world.rank() != 0 || config.data.train.empty()) {
    return {};
  }
  const std::filesystem::path& folder = config.data.train.front().path;
  try {
    return tokenizer_of(parse_dataset_manifest(read_manifest_text(folder),
                                               (folder / kDatasetManifestName).string()));
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

std::vector<Finding> check_taken_weights(const RunConfig& config, Communicator& world) {
  std::vector<Finding> found;
  const auto note = [&](const std::function<void()>& work) {
    try {
      work();
    } catch (const Error& error) {
      if (world.rank() == 0) {
        found.push_back(error_of(error, "all ranks"));
      }
    }
  };
  if (has_nothing_to_do(config, world)) {
    return found;
  }
  const bool reads_first = reads_first_weights(config, world);
  if (!reads_first && !config.distill.is_on()) {
    return found;
  }
  const EncryptionConfig& encryption = config.encryption;
  std::unique_ptr<StepKeys> keys;
  try {
    if (!encryption.keys.empty()) {
      keys = std::make_unique<StepKeys>(world, KeyOptions{encryption.keys, encryption.accept_plain,
                                                          encryption.accept_plain_data});
    }
  } catch (const Error&) {
    return found;  // check_keys() reports it
  }
  const TokenizerIdentity data = tokenizer_of_data(config, world);
  if (reads_first) {
    note([&] {
      StepFolder step =
          find_initial_step("checkpoint.init_from", config.checkpoint.init_from, world);
      if (const std::string warning = warning_of_tokenizer(step, data); !warning.empty()) {
        found.push_back(warning_of(warning, "all ranks", ""));
      }
      open_initial_step(step, config, keys.get(), {});
    });
  }
  if (config.distill.is_on()) {
    note([&] {
      check_teacher_opens(config, world, keys.get(), [&](const StepFolder& teacher) {
        run_on_root(world, [&] {
          check_tokenizer_of_teacher(teacher, data);
          return std::string();
        });
      });
    });
  }
  return found;
}

}  // namespace trireme
