#include "mpi/collective/greeting.h"

#include <cstring>

namespace trireme {
namespace {

constexpr std::uint32_t kMagic = 0x4F4C4854;

struct Header {
  std::uint32_t magic;
  OperationKind kind;
  DType dtype;
  std::uint8_t op;
  SumOrder order;
  std::int32_t root;
  std::int32_t nothing;
  std::int64_t number;
  std::int64_t bytes;
};
static_assert(sizeof(Header) == kGreetingBytes);

}  // namespace

void write_greeting(std::byte* at, const OperationLabel& label) {
  const Header header{kMagic,      label.kind, label.dtype, static_cast<std::uint8_t>(label.op),
                      label.order, label.root, 0,           label.number,
                      label.bytes};
  std::memcpy(at, &header, sizeof(header));
}

std::optional<OperationLabel> read_greeting(const std::byte* at) {
  Header header;
  std::memcpy(&header, at, sizeof(header));
  if (header.magic != kMagic || !is_collective(header.kind) || header.dtype > DType::u32 ||
      header.op > static_cast<std::uint8_t>(ReduceOp::min) || header.order > SumOrder::any) {
    return std::nullopt;
  }
  return OperationLabel{header.kind, header.dtype,  header.order, static_cast<ReduceOp>(header.op),
                        header.root, header.number, header.bytes};
}

// Clears the magic number, so that a greeting of an earlier operation in this memory is not
// mistaken for this one's.
TransferId recv_greeting(Exchange& exchange, std::byte* at, std::int64_t bytes, int from) {
  std::memset(at, 0, sizeof(kMagic));
  return exchange.recv_of_any_length(at, bytes, kFirstMessageBytes, from);
}

OperationLabel check_greeting(const Exchange& exchange, const std::byte* at, int from) {
  const OperationLabel& own = exchange.label();
  const auto other = read_greeting(at);
  if (!other) {
    throw CommError(fmt::format(
        "{} is in {}, but {} sent something that does not belong to it: the ranks are out of step",
        exchange.describe(exchange.rank()), own.full_text(), exchange.describe(from)));
  }
  if (!agree(own, *other)) {
    throw CommError(fmt::format("{} is in {}, but {} is in {}: the ranks are out of step",
                                exchange.describe(exchange.rank()), own.full_text(),
                                exchange.describe(from), other->full_text()));
  }
  return *other;
}

void greet(Exchange& exchange, Scratch& scratch) {
  const int size = exchange.size();
  std::byte* const own = scratch.bytes(kGreetingBytes + kFirstMessageBytes);
  std::byte* const received = own + kGreetingBytes;
  write_greeting(own, exchange.label());
  for (int distance = 1; distance < size; distance <<= 1) {
    const int from = (exchange.rank() + distance) % size;
    recv_greeting(exchange, received, kGreetingBytes, from);
    exchange.send(own, kGreetingBytes, (exchange.rank() - distance + size) % size);
    exchange.wait_all();
    check_greeting(exchange, received, from);
  }
}

}  // namespace trireme
