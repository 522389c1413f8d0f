#include "src/compute/host_reads.h"

#include <cstring>

namespace trireme {

std::size_t HostReads::add(const ConstView& view) {
  reads_.push_back({context_.staging().allocate(view.bytes()), view.dtype});
  const View host = reads_.back().buffer.view(view.dtype);
  if (context_.device().kind == DeviceKind::counting) {
    std::memset(host.data, 0, static_cast<std::size_t>(host.bytes()));
  } else {
    context_.stream().copy(host, view);
  }
  return reads_.size() - 1;
}

}  // namespace trireme
