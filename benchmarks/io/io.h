// `trireme bench io` measures a file system: the rates of writing and reading with IOR's meaning of
// its options, and the rates of metadata operations with mdtest's. All ranks of the job take part.
// It writes its own files, and reads only those.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "benchmarks/io/io_engine.h"
#include "benchmarks/io/io_layout.h"
#include "benchmarks/io/ior_table.h"
#include "benchmarks/measured_rows.h"
#include "mpi/session/mpi_session.h"

namespace trireme {

// IoCache says what the page cache may do: evict: files are written back and dropped before they
// are read; keep: nothing is done, as in IOR; bypass: O_DIRECT.
enum class IoCache : std::uint8_t { evict, keep, bypass };

struct BenchIoOptions {
  std::filesystem::path folder = ".";  // on the disk to measure
  bool data = true;                    // IOR's part
  bool metadata = true;                // mdtest's part
  IoApi api = IoApi::posix;
  IoLayout layout;           // ranks are set by the benchmark
  int depth = 8;             // transfers in flight with io_uring
  bool reorder = false;      // -C: ranks read what others wrote
  int task_offset = 1;       // -Q
  double stonewall = 0;      // -D: seconds after which a rank stops; 0 for none
  bool fsync = false;        // -e: at the end of a write, within its time
  bool check_write = false;  // -W: compares every byte after each write
  bool check_read = false;   // -R: compares every byte after each read
  IoCache cache = IoCache::evict;
  std::int64_t repetitions = 3;
  double duration = 0;  // seconds of repetitions, instead of `repetitions` of them
  // For the metadata operations, per rank:
  std::int64_t files = 1000;
  std::int64_t file_bytes = 0;
  bool own_folders = false;      // -u: a folder for each rank instead of one for all
  MeasuredRows* rows = nullptr;  // also gets each row once it is measured, unless null
};

struct BenchIoResult {
  nlohmann::ordered_json results;  // entries {name, params, metrics, measurement, samples}
  std::int64_t wrong = 0;          // bytes that came back wrong, over all ranks
  IorSetup setup;
  std::vector<IorPhase> phases;  // on rank 0; empty without data
};

// Prints the tables on rank 0. Collective.
BenchIoResult bench_io(const BenchIoOptions& options, MpiSession& session);

}  // namespace trireme
