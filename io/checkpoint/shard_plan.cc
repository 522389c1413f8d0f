#include "io/checkpoint/shard_plan.h"

#include <algorithm>

#include "io/checkpoint/names.h"
#include "io/checkpoint/safetensors.h"
#include "io/checkpoint/tiling.h"
#include "src/base/error.h"

namespace trireme {
namespace {

std::vector<const TensorBlock*> in_file_order(std::span<const TensorBlock> blocks) {
  std::vector<const TensorBlock*> order;
  for (const TensorBlock& block : blocks) {
    check_block(block);
    check(!block.name.empty() && block.name.find('\0') == std::string::npos,
          "a tensor's name is not empty and has no zero byte");
    order.push_back(&block);
  }
  std::stable_sort(order.begin(), order.end(), [](const TensorBlock* a, const TensorBlock* b) {
    return size_of(a->data.dtype) > size_of(b->data.dtype);
  });
  return order;
}

SafetensorsEntry entry_of(const TensorBlock& block, std::int64_t begin) {
  return {block_name(block.name, block.extent, block.shape), block.data.dtype,
          is_whole(block.extent, block.shape) ? block.shape.to_vector() : block.extent.length,
          begin, begin + block.bytes()};
}

void add_stored_block(const TensorBlock& block, std::int64_t offset,
                      std::map<std::string, StoredTensor>& tensors) {
  auto& tensor =
      tensors.try_emplace(block.name, StoredTensor{block.name, block.data.dtype, block.shape, {}})
          .first->second;
  check(tensor.dtype == block.data.dtype && tensor.shape == block.shape,
        "blocks of one tensor agree about its type and shape");
  tensor.blocks.push_back({0, offset, block.extent});
}

}  // namespace

std::string block_name(const std::string& tensor, const Extent& extent, const Shape& shape) {
  if (is_whole(extent, shape)) {
    return tensor;
  }
  std::string ranges;
  for (std::size_t axis = 0; axis < extent.start.size(); ++axis) {
    ranges += fmt::format("{}{}:{}", axis == 0 ? "" : ",", extent.start[axis],
                          extent.start[axis] + extent.length[axis]);
  }
  return fmt::format("{}[{}{}]", tensor, extent.kind == Extent::Kind::flat ? "flat " : "", ranges);
}

ShardPlan plan_shard(std::span<const TensorBlock> blocks,
                     std::map<std::string, std::string> metadata) {
  const std::vector<const TensorBlock*> order = in_file_order(blocks);
  std::vector<SafetensorsEntry> entries;
  std::int64_t data_bytes = 0;
  for (const TensorBlock* block : order) {
    entries.push_back(entry_of(*block, data_bytes));
    data_bytes = entries.back().end;
  }
  metadata["format"] = "pt";  // required by the loaders of Hugging Face
  ShardPlan plan;
  plan.head = encode_safetensors_header(metadata, entries, kDataAlignment);
  const auto data_offset = static_cast<std::int64_t>(plan.head.size());
  std::map<std::string, StoredTensor> tensors;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::int64_t offset = data_offset + entries[i].begin;
    add_byte_runs(*order[i], 0, order[i]->extent.elements(), offset, plan.runs);
    add_stored_block(*order[i], offset, tensors);
  }
  for (auto& [name, tensor] : tensors) {
    plan.tensors.push_back(std::move(tensor));
  }
  plan.bytes = data_offset + data_bytes;
  return plan;
}

ShardPlan plan_shard_of_rank(std::span<const TensorBlock> blocks, std::int64_t step,
                             std::int64_t generation, int rank) {
  return plan_shard(blocks, {{"trireme_step", std::to_string(step)},
                             {"trireme_generation", std::to_string(generation)},
                             {kShardField, std::to_string(rank)}});
}

}  // namespace trireme
