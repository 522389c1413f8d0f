#include "src/train/saving/kept_zeros.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "mpi/agreement.h"
#include "src/train/saving/host_mirror.h"

namespace trireme {

KeptZeros count_kept_zeros(Engine& engine, Communicator& world) {
  std::vector<TensorBlock> blocks;
  for (const auto& chunk : engine.chunks()) {
    std::vector<StatePiece> pieces = chunk->state.pieces_to_save();
    for (StatePiece& piece : pieces) {
      piece.states.clear();
      piece.state_names.clear();
    }
    add_blocks(chunk->parameters, pieces, blocks);
  }
  std::erase_if(blocks, [](const TensorBlock& block) {
    return block.shape.rank() != 2 || block.data.dtype != DType::f32;
  });
  HostMirror mirror(engine.context());
  KeptZeros kept;
  for (const TensorBlock& block : mirror.fetch(blocks)) {
    const auto* const values = static_cast<const float*>(block.data.data);
    const BlockRows rows = block.rows();
    const std::int64_t elements = block.extent.elements();
    kept.elements += elements;
    for (std::int64_t first = 0; first < elements; first += rows.width) {
      const float* const row = values + rows.at(first);
      kept.zeros += std::count(row, row + rows.width, 0.0F);
    }
  }
  kept.elements = all_reduce_value(world, kept.elements, ReduceOp::sum);
  kept.zeros = all_reduce_value(world, kept.zeros, ReduceOp::sum);
  return kept;
}

std::string text_of(const KeptZeros& kept) {
  if (kept.zeros == 0) {
    return "optimizer.keep_zeros has no effect, because no weight of a matrix is zero: does "
           "checkpoint.init_from name the pruned checkpoint?";
  }
  return fmt::format("optimizer.keep_zeros: {:.1f} % of the weights of matrices stay zero",
                     100.0 * static_cast<double>(kept.zeros) / static_cast<double>(kept.elements));
}

}  // namespace trireme
