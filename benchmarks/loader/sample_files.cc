#include "benchmarks/loader/sample_files.h"

#include <algorithm>
#include <cstring>

#include <fmt/core.h>

#include "benchmarks/busy_watch.h"
#include "io/data/feistel_permutation.h"
#include "src/base/error.h"
#include "src/base/philox.h"

namespace trireme {
namespace {

constexpr std::int64_t kNumberBytes = 8;
constexpr std::uint64_t kOrderSeed = 1;

std::vector<char> random_bytes(std::int64_t bytes) {
  std::vector<char> all(static_cast<std::size_t>((bytes + 7) / 8 * 8));
  for (std::size_t i = 0; i < all.size() / 8; ++i) {
    const std::uint64_t word = mix64(i);
    std::memcpy(all.data() + 8 * i, &word, sizeof word);
  }
  return all;
}

}  // namespace

SampleFiles::SampleFiles(std::filesystem::path folder, EmulatedWorkload workload,
                         std::int64_t samples)
    : folder_(std::move(folder)), workload_(std::move(workload)), samples_(samples) {}

std::int64_t SampleFiles::files() const {
  return (samples_ + workload_.samples_per_file - 1) / workload_.samples_per_file;
}

std::filesystem::path SampleFiles::path_of(std::int64_t file) const {
  return folder_ / fmt::format("sample-{:08}", file);
}

std::int64_t SampleFiles::bytes() const {
  std::int64_t total = 0;
  for (std::int64_t sample = 0; sample < samples_; ++sample) {
    total += workload_.bytes_of(sample);
  }
  return total;
}

std::int64_t SampleFiles::offset_of(std::int64_t sample) const {
  // Samples of one file have equal sizes in all workloads.
  return sample % workload_.samples_per_file * workload_.bytes_of(sample);
}

void SampleFiles::write(int rank, int ranks) const {
  std::vector<char> data;
  for (std::int64_t number = rank; number < files(); number += ranks) {
    File file = File::create_new(path_of(number));
    const std::int64_t first = number * workload_.samples_per_file;
    for (std::int64_t sample = first;
         sample < std::min(first + workload_.samples_per_file, samples_); ++sample) {
      const std::int64_t bytes = workload_.bytes_of(sample);
      if (std::ssize(data) < bytes) {
        data = random_bytes(bytes);
      }
      std::memcpy(data.data(), &sample, kNumberBytes);
      std::memcpy(data.data() + bytes - kNumberBytes, &sample, kNumberBytes);
      file.write(data.data(), bytes);
    }
    file.sync();
    file.wont_need(0, 0);  // to the end of the file
    file.close();
  }
}

void SampleFiles::read(std::int64_t sample, std::vector<char>& buffer) const {
  const std::int64_t bytes = workload_.bytes_of(sample);
  buffer.resize(std::max(buffer.size(), static_cast<std::size_t>(bytes)));
  const File file = File::open_to_read(path_of(sample / workload_.samples_per_file));
  const std::int64_t offset = offset_of(sample);
  file.read_exactly_at(offset, buffer.data(), bytes);
  for (const std::int64_t at : {std::int64_t{0}, bytes - kNumberBytes}) {
    if (std::memcmp(buffer.data() + at, &sample, kNumberBytes) != 0) {
      throw DeviceError(fmt::format("{}: sample {} came back wrong: test this storage",
                                    file.path().string(), sample));
    }
  }
  file.wont_need(offset, bytes);
}

SampleReader::SampleReader(const SampleFiles& files, const EmulatedWorkload& workload, int rank,
                           int ranks)
    : files_(files), per_batch_(workload.batch), rank_(rank), ranks_(ranks) {
  for (int i = 0; i < workload.threads; ++i) {
    threads_.emplace_back([this] {
      work();
      count_ending_thread();
    });
  }
}

SampleReader::~SampleReader() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) {
    thread.join();
  }
}

std::int64_t SampleReader::sample_of(std::int64_t item) const {
  const std::int64_t n = (item / per_batch_ * ranks_ + rank_) * per_batch_ + item % per_batch_;
  const std::int64_t epoch = n / files_.samples();
  return FeistelPermutation(files_.samples(),
                            kOrderSeed + static_cast<std::uint64_t>(epoch))(n % files_.samples());
}

void SampleReader::work() {
  std::vector<char> buffer;
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(
        lock, [this] { return ends_ || error_ || claimed_ < (delivered_ + kAhead) * per_batch_; });
    if (ends_ || error_) {
      return;
    }
    const std::int64_t item = claimed_++;
    const std::int64_t batch = item / per_batch_;
    while (delivered_ + std::ssize(missing_) <= batch) {
      missing_.push_back(per_batch_);
    }
    lock.unlock();
    std::exception_ptr error;
    try {
      files_.read(sample_of(item), buffer);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    error_ = error ? error : error_;
    if (--missing_[static_cast<std::size_t>(batch - delivered_)] == 0 || error_) {
      changed_.notify_all();
    }
  }
}

void SampleReader::next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return error_ || (!missing_.empty() && missing_.front() == 0); });
  if (error_) {
    std::rethrow_exception(error_);
  }
  missing_.pop_front();
  ++delivered_;
  changed_.notify_all();
}

}  // namespace trireme
