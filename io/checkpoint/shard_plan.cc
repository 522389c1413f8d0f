#include "io/checkpoint/shard_plan.h"

#include <algorithm>

#include "io/checkpoint/names.h"
#include "io/checkpoint/safetensors.h"
#include "io/checkpoint/tiling.h"

namespace trireme {
namespace {

std::vector<const TensorBlock*> in_file_order(std::span<const TensorBlock> blocks) {
  std::vector<const TensorBlock*> order;
  for (const TensorBlock& block : blocks) {
    check(block.extent.fits(block.shape), "a block lies within its tensor");
    check(block.data.count == block_rows(block.extent, block.pitch).span(block.extent.elements()),
          "a block's data has its extent's size");
    check(block.data.dtype == block.dtype, "a block's data has its tensor's type");
    check(block.data.device.kind == DeviceKind::cpu, "a block to be saved lies on the CPU");
    check(!block.name.empty() && block.name.find('\0') == std::string::npos,
          "a tensor's name is not empty and has no zero byte");
    order.push_back(&block);
  }
  std::stable_sort(order.begin(), order.end(), [](const TensorBlock* a, const TensorBlock* b) {
    return size_of(a->dtype) > size_of(b->dtype);
  });
  return order;
}

SafetensorsEntry entry_of(const TensorBlock& block, std::int64_t begin) {
  return {block_name(block.name, block.extent, block.shape), block.dtype,
          is_whole(block.extent, block.shape) ? block.shape.to_vector() : block.extent.length,
          begin, begin + block.bytes()};
}

std::vector<StoredTensor> tensors_of(const std::vector<const TensorBlock*>& order,
                                     const std::vector<PlacedBlock>& placed) {
  std::map<std::string, StoredTensor> tensors;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const TensorBlock& block = *order[i];
    auto& tensor =
        tensors.try_emplace(block.name, StoredTensor{block.name, block.dtype, block.shape, {}})
            .first->second;
    check(tensor.dtype == block.dtype && tensor.shape == block.shape,
          "blocks of one tensor agree about its type and shape");
    tensor.blocks.push_back({0, placed[i].offset, block.extent});
  }
  std::vector<StoredTensor> sorted;
  for (auto& [name, tensor] : tensors) {
    sorted.push_back(std::move(tensor));
  }
  return sorted;
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
  metadata["format"] = "pt";  // what the loaders of Hugging Face ask for
  ShardPlan plan;
  plan.head = encode_safetensors_header(metadata, entries, kDataAlignment);
  const auto data_offset = static_cast<std::int64_t>(plan.head.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const TensorBlock& block = *order[i];
    plan.blocks.push_back({block.data, block_rows(block.extent, block.pitch), block.bytes(),
                           data_offset + entries[i].begin});
  }
  plan.tensors = tensors_of(order, plan.blocks);
  plan.bytes = data_offset + data_bytes;
  return plan;
}

}  // namespace trireme
