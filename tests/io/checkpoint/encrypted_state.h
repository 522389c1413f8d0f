// Saves and loads encrypted checkpoints in tests: a key file, and runs whose ranks are threads.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "io/checkpoint/step_keys.h"
#include "src/base/file.h"
#include "tests/io/checkpoint/sample_state.h"
#include "tests/support/encrypted_files.h"

namespace trireme {

// Saves in a run of its own and returns the outcome of rank 0.
inline SaveOutcome save_encrypted(const std::filesystem::path& folder,
                                  const std::vector<std::string>& keys, const State& state,
                                  std::int64_t step, const Cut& cut = cut_nothing, int ranks = 1) {
  SaveOutcome result;
  ThreadWorld(ranks).run([&](Communicator& comm) {
    const Blocks blocks = cut_state(state, cut, comm.rank(), comm.size());
    StepKeys step_keys(comm, {keys, false});
    step_keys.prepare_to_save();
    DiskTarget target(comm, options_for(folder));
    CheckpointWriter writer(comm, target);
    writer.save(meta_of(step), blocks.list, nullptr, step_keys.next());
    const auto outcome = writer.finish();
    if (comm.rank() == 0) {
      result = outcome.value();
    }
  });
  return result;
}

// As load_state(), with keys.
inline LoadedState load_encrypted(const std::filesystem::path& folder, const KeyOptions& keys,
                                  const State& expected, const Cut& cut = cut_nothing,
                                  int ranks = 1) {
  return load_state(folder, expected, cut, ranks, {}, &keys);
}

// Returns bytes of a tensor by which its plain text can be recognized.
inline std::string_view canary_of(const LogicalTensor& tensor) {
  return {reinterpret_cast<const char*>(tensor.bytes.data()) + tensor.bytes.size() / 2, 16};
}

}  // namespace trireme
