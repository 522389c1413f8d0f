// `trireme bench ckpt` measures the cost of a checkpoint, against the machine's own ceilings on the
// same path in the same run. Each round measures, one after the other:
//   memcpy   one copy of the whole state between warm buffers, by the same number of threads
//   stall    CheckpointWriter::save() with no other save in flight: plan, copy, start the writer
//   write    from the end of save() to the durable, renamed checkpoint; includes digests and fsync
//   load     every block, with digests compared; uses O_DIRECT to exclude caches
//   memory   the stall of a save in memory, and a load from there
//   sealed   stall, write and load of an encrypted checkpoint, compared with those of a plain one
//   dd       write (oflag=direct conv=fsync) and read (iflag=direct) of as many bytes, bs=8M
// The medians over the rounds are compared. A last save with read-back shows what read-back costs.
#pragma once

#include <cstdint>
#include <filesystem>

#include <nlohmann/json_fwd.hpp>

namespace trireme {

struct BenchCkptOptions {
  std::filesystem::path folder;  // on the disk to measure; the benchmark makes a folder in it
  std::int64_t bytes = std::int64_t{2} << 30;
  int rounds = 5;
  double duration = 0;  // seconds of rounds, instead of `rounds` of them
  int threads = 0;      // for the copies; 0 for all processors that this process may use
  // A folder on the file system that plays the part of a node's memory, with room for three times
  // the state. If it is empty, checkpoints in memory are not measured.
  std::filesystem::path memory = {};
  bool encrypt = false;  // also measure encrypted checkpoints, with a key of the benchmark's own
};

// Returns an array of entries {name, params, metrics, measurement, samples}: ckpt_stall
// (fraction_of_ceiling is memcpy over stall, and ratio its inverse), ckpt_write and ckpt_load
// (fraction_of_ceiling is relative to dd); with `memory` also ckpt_memory_stall and
// ckpt_memory_load, both relative to memcpy; with `encrypt` also ckpt_encrypted_stall, _write and
// _load, relative to the plain ones of the same rounds.
nlohmann::ordered_json bench_ckpt(const BenchCkptOptions& options);

}  // namespace trireme
