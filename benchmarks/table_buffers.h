// TableBuffers holds pairs of arrays on which the rows of a table, such as sizes of messages, are
// measured. The arrays grow with the rows, so that a row that is left out takes no memory. A row
// for which the memory of any rank is too small is left out and named. Owned by a benchmark, and
// ends before the memory sources; all ranks make the same calls and get the same answers.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "mpi/communicator.h"
#include "src/device/pool.h"

namespace trireme {

class TableBuffers {
 public:
  struct Options {
    Device device = Device::cpu();
    int local_ranks = 1;  // of this host, which all allocate as much
    // Sets the elements of a new array to zero. May be empty.
    std::function<void(const View&)> clear;
  };
  // control: connects the ranks over memory of the host, and outlives the buffers.
  TableBuffers(Communicator& control, Options options);

  // Adds a pair in `source`, which is memory of the device. Returns its number, from 0.
  std::size_t add(MemorySource& source);

  // Returns whether all arrays of all ranks now hold `bytes` bytes. If they had to grow, their old
  // contents are lost. Throws ResourceError if the memory is too small for the first row.
  bool holds(const std::string& row, std::int64_t bytes);

  const Buffer& first(std::size_t pair = 0) const { return pairs_.at(pair).first; }
  const Buffer& second(std::size_t pair = 0) const { return pairs_.at(pair).second; }
  std::int64_t bytes() const { return bytes_; }

  // Names of the rows that were left out, in their order.
  const std::vector<std::string>& left_out() const { return left_out_; }
  // Returns a comment below the table that names the rows left out since the last call, or "".
  std::string text();

 private:
  struct Pair {
    Pair(Device device, MemorySource& source) : pool(std::make_unique<Pool>(device, source)) {}
    std::unique_ptr<Pool> pool;
    Buffer first, second;
  };
  std::string shortage(std::int64_t bytes) const;
  std::string grow(std::int64_t bytes);
  void release();
  bool all_ranks(const std::string& fault) const;

  Communicator& control_;
  Options options_;
  std::deque<Pair> pairs_;
  std::int64_t bytes_ = 0;  // that each array holds
  bool held_any_ = false;
  std::vector<std::string> left_out_;
  std::size_t told_ = 0;  // how many of them text() has named
};

}  // namespace trireme
