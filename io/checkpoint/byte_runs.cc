#include "io/checkpoint/byte_runs.h"

#include <algorithm>

namespace trireme {

void check_block(const TensorBlock& block) {
  check(block.extent.fits(block.shape), "a block lies within its tensor");
  check(block.data.count == block.rows().span(block.extent.elements()),
        "a block's data has the size of its extent");
  check(block.data.device.kind == DeviceKind::cpu, "a block to be saved or loaded is on the CPU");
}

void add_byte_runs(const TensorBlock& block, std::int64_t first, std::int64_t elements,
                   std::int64_t offset, std::vector<ByteRun>& runs) {
  const BlockRows rows = block.rows();
  const std::int64_t size = size_of(block.data.dtype);
  auto* const data = static_cast<std::byte*>(block.data.data);
  for (std::int64_t done = 0; done < elements;) {
    const std::int64_t at = first + done;
    const std::int64_t left = elements - done;
    const std::int64_t n = rows.dense() ? left : std::min(rows.width - at % rows.width, left);
    const ByteRun run{data + rows.at(at) * size, offset + done * size, n * size};
    if (!runs.empty() && runs.back().memory + runs.back().bytes == run.memory &&
        runs.back().offset + runs.back().bytes == run.offset) {
      runs.back().bytes += run.bytes;
    } else {
      runs.push_back(run);
    }
    done += n;
  }
}

}  // namespace trireme
