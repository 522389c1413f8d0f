// SampleFiles are files of random samples, as image and volume data is stored, and SampleReader
// reads batches of them in random order on threads of its own.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <filesystem>
#include <mutex>
#include <thread>
#include <vector>

#include "benchmarks/loader/batch_source.h"
#include "benchmarks/loader/workload.h"
#include "src/base/file.h"

namespace trireme {

// Where the samples are. Each begins and ends with its own number.
class SampleFiles {
 public:
  SampleFiles(std::filesystem::path folder, EmulatedWorkload workload, std::int64_t samples);

  std::int64_t samples() const { return samples_; }
  std::int64_t bytes() const;
  // Writes every `ranks`-th file, beginning with number `rank`, to the disk and out of the cache.
  void write(int rank, int ranks) const;
  // Reads a sample into the buffer, checks that it is the right one, and drops it from the cache.
  // Throws DeviceError if another one came back. Any thread may call it.
  void read(std::int64_t sample, std::vector<char>& buffer) const;

 private:
  std::int64_t files() const;
  std::filesystem::path path_of(std::int64_t file) const;
  std::int64_t offset_of(std::int64_t sample) const;

  std::filesystem::path folder_;
  EmulatedWorkload workload_;
  std::int64_t samples_;
};

class SampleReader : public BatchSource {
 public:
  // Reads sample number n = (batch * ranks + rank) * W + i of the run for item i of a batch of W.
  // files: must outlive this object.
  SampleReader(const SampleFiles& files, const EmulatedWorkload& workload, int rank, int ranks);
  ~SampleReader() override;
  void next() override;

 private:
  static constexpr std::int64_t kAhead = 2;  // batches, besides the one in use
  void work();
  std::int64_t sample_of(std::int64_t item) const;

  const SampleFiles& files_;
  std::int64_t per_batch_;
  int rank_;
  int ranks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::int64_t claimed_ = 0;          // samples of this rank that a thread reads or has read
  std::int64_t delivered_ = 0;        // batches
  std::deque<std::int64_t> missing_;  // samples of the batches from number delivered_ on
  std::exception_ptr error_;
  bool ends_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace trireme
