#include "src/interchange/export.h"

#include "mpi/agreement.h"
#include "src/base/error.h"
#include "src/interchange/carried_files.h"
#include "src/train/saving/base_weights.h"

namespace trireme {
namespace {

void check_plain(const StepFolder& step, const ExportOptions& options) {
  if (!step.manifest->data_key.empty() && !options.plain) {
    throw PolicyError(fmt::format(
        "{} is encrypted, but exported files are not: give --plain if they may be written",
        step.path.string()));
  }
}

}  // namespace

StepFolder open_step(const ExportOptions& options, Communicator& world, StepKeys& keys) {
  const std::string path = run_on_root(world, [&] {
    std::vector<std::string> skipped;
    return find_step(options.checkpoint, skipped).path.string();
  });
  StepFolder step;
  std::string missing;
  try {
    std::vector<std::string> none;
    step = find_step(path, none);
  } catch (const Error& error) {  // this host sees other files than that of rank 0
    missing = error.what();
  }
  if (const std::string all = gather_faults(world, missing); !all.empty()) {
    throw NotFound(all);
  }
  if (const std::string fault = keys.unlock(*step.manifest, step.path); !fault.empty()) {
    throw DataError(fault);
  }
  check_plain(step, options);
  return step;
}

CheckpointWeights open_weights(const ExportOptions& options, Communicator& world, StepKeys& keys) {
  StepFolder step = open_step(options, world, keys);
  std::optional<StepFolder> base;
  if (needs_base(*step.manifest)) {
    base = recorded_base(step);
    if (const std::string fault = keys.unlock(*base->manifest, base->path); !fault.empty()) {
      throw DataError(fault);
    }
    check_plain(*base, options);
  }
  return {std::move(step), options.weights, std::move(base)};
}

void carry_tokenizer(const ModelTokenizer& tokenizer, const std::filesystem::path& to,
                     ExportResult& result) {
  copy_carried_files(tokenizer, to);
  result.warning = tokenizer.warning;
  if (!tokenizer.note.empty()) {
    result.notes.push_back(tokenizer.note);
  }
}

void finish_export(const ExportOptions& options, DraftFolder& draft, const StepFolder& step) {
  if (options.finish) {
    options.finish(draft.path(), step);
  }
  draft.keep();
}

}  // namespace trireme
