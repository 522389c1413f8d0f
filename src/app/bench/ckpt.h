// `trireme bench ckpt`: what a checkpoint costs, against the machine's own ceilings on the same
// path in the same run. Each round measures, one after the other,
//   memcpy   one copy of the whole state between warm buffers, split evenly over the same threads
//   stall    CheckpointWriter::save(), nothing in flight: planning, copying, starting the writer
//   write    from the end of save() to the durable, renamed checkpoint; digests and fsync included
//   load     every block, digests compared; O_DIRECT, so that no cache helps
//   memory   the stall of MemoryWriter::save(), and a load from there
//   dd       write (oflag=direct conv=fsync) and read (iflag=direct) of as many bytes, bs=8M
// and the medians over the rounds are compared. A last save with read-back tells what that costs.
#pragma once

#include <cstdint>
#include <filesystem>

#include <nlohmann/json_fwd.hpp>

namespace trireme {

struct BenchCkptOptions {
  std::filesystem::path folder;  // on the disk to be measured; a folder of its own is made within
  std::int64_t bytes = std::int64_t{2} << 30;
  int rounds = 5;
  int threads = 0;  // of the copies; 0: all processors that this process may use
  // On the file system that stands for the node's memory; empty: without it. It takes three times
  // the state.
  std::filesystem::path memory = {};
};

// An array of entries {name, params, metrics}: ckpt_stall (fraction_of_ceiling is memcpy over
// stall, ratio its inverse), ckpt_write and ckpt_load (fraction_of_ceiling over dd); with memory
// also ckpt_memory_stall and ckpt_memory_load, both against memcpy.
nlohmann::ordered_json bench_ckpt(const BenchCkptOptions& options);

}  // namespace trireme
