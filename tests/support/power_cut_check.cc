// Reads checkpoint folders from stdin and prints for each what a run would resume from, as "STEP
// DIGEST" or "none"; the same after a writer has taken over the folder and cleaned up; and whether
// that writer could save and find its save. The output is one line per folder:
// "FOLDER\tBEFORE\tAFTER\tsaved". The folders are those that a power cut may leave
// (tests/support/power_cut.py).
#include <cstdio>
#include <iostream>

#include "io/checkpoint/disk_target.h"
#include "io/checkpoint/load/checkpoint_loader.h"
#include "io/checkpoint/load/logical_digest.h"
#include "io/checkpoint/store.h"
#include "io/checkpoint/writer.h"
#include "mpi/self_communicator.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kLaterStep = 99'999'999;

// Returns the newest step whose bytes all match their digests, in the order in which resume() tries
// steps.
std::string newest(const fs::path& folder) {
  for (const StepFolder& step : list_steps(folder)) {
    try {
      if (step.manifest) {
        return fmt::format("{} {}", step.step,
                           logical_digest(step.path, *step.manifest, DigestScope::all));
      }
    } catch (const Error&) {
      // The step is damaged, so try the next older one.
    }
  }
  return "none";
}

DiskOptions options_for(const fs::path& folder) {
  DiskOptions options;
  options.folder = folder;
  options.retention.keep = 10;
  options.copy_threads = 1;
  options.io.threads = 1;
  return options;
}

std::string look_at(const fs::path& folder) {
  const std::string before = newest(folder);
  SelfCommunicator comm;
  DiskTarget target(comm, options_for(folder));
  CheckpointWriter writer(comm, target);
  const std::string after = newest(folder);
  float value = 1;
  const TensorBlock block{"x", {1}, Extent::whole({1}), {&value, 1, DType::f32}, 0};
  CheckpointMeta meta;
  meta.step = kLaterStep;
  writer.save(meta, std::span(&block, 1));
  const auto outcome = writer.finish();
  const bool saved =
      outcome && outcome->durable && newest(folder).starts_with(fmt::format("{} ", kLaterStep));
  return fmt::format("{}\t{}\t{}", before, after, saved ? "saved" : outcome->message);
}

}  // namespace
}  // namespace trireme

int main() {
  for (std::string folder; std::getline(std::cin, folder);) {
    std::string found;
    try {
      found = trireme::look_at(folder);
    } catch (const std::exception& e) {
      found = fmt::format("error: {}", e.what());
    }
    fmt::print("{}\t{}\n", folder, found);
  }
  return 0;
}
