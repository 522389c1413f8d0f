#include "mpi/communicator.h"

#include <algorithm>
#include <cstdint>

namespace trireme {
namespace {

template <class T>
T all_reduced(Communicator& comm, T value, ReduceOp op) {
  comm.all_reduce({&value, 1, dtype_of<T>(), Device{}}, op).wait();
  return value;
}

View bytes_of(std::string& text) {
  return {text.data(), static_cast<std::int64_t>(text.size()), DType::u8, Device{}};
}

}  // namespace

double all_reduce_value(Communicator& comm, double value, ReduceOp op) {
  return all_reduced(comm, value, op);
}

std::int64_t all_reduce_value(Communicator& comm, std::int64_t value, ReduceOp op) {
  return all_reduced(comm, value, op);
}

// Two steps: the lengths, then every text padded to the longest.
std::vector<std::string> all_gather_text(Communicator& comm, const std::string& text) {
  const auto size = static_cast<std::size_t>(comm.size());
  const auto rank = static_cast<std::size_t>(comm.rank());
  std::vector<std::int64_t> lengths(size);
  lengths[rank] = static_cast<std::int64_t>(text.size());
  comm.all_gather({lengths.data(), comm.size(), DType::i64, Device{}}).wait();
  const auto longest = static_cast<std::size_t>(*std::max_element(lengths.begin(), lengths.end()));
  std::string all(size * longest, '\0');
  std::copy(text.begin(), text.end(), all.begin() + static_cast<std::ptrdiff_t>(rank * longest));
  comm.all_gather(bytes_of(all)).wait();
  std::vector<std::string> texts(size);
  for (std::size_t r = 0; r < size; ++r) {
    texts[r] = all.substr(r * longest, static_cast<std::size_t>(lengths[r]));
  }
  return texts;
}

std::string broadcast_text(Communicator& comm, const std::string& text, int root) {
  std::int64_t length = static_cast<std::int64_t>(text.size());
  comm.broadcast({&length, 1, DType::i64, Device{}}, root).wait();
  std::string result = text;
  result.resize(static_cast<std::size_t>(length));
  comm.broadcast(bytes_of(result), root).wait();
  return result;
}

}  // namespace trireme
