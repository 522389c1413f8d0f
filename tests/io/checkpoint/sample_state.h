// Provides a small state with every kind of tensor, ways to cut it among ranks, and functions that
// save and load it, for the tests of this folder. Ranks are threads.
#pragma once

#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "io/checkpoint/disk_target.h"
#include "io/checkpoint/load/logical_digest.h"
#include "io/checkpoint/load/resume.h"
#include "io/checkpoint/store.h"
#include "io/checkpoint/writer.h"
#include "mpi/thread/thread_world.h"
#include "src/base/philox.h"
#include "tests/support/temp_folder.h"

namespace trireme {

struct LogicalTensor {
  std::string name;
  DType dtype;
  Shape shape;
  std::vector<std::byte> bytes;
};
using State = std::vector<LogicalTensor>;

inline LogicalTensor make_tensor(const std::string& name, DType dtype, const Shape& shape,
                                 std::uint64_t seed) {
  LogicalTensor tensor{name, dtype, shape, {}};
  tensor.bytes.resize(static_cast<std::size_t>(shape.elements() * size_of(dtype)));
  for (std::size_t i = 0; i < tensor.bytes.size(); ++i) {
    tensor.bytes[i] = static_cast<std::byte>(mix64(seed * 1'000'003 + i));
  }
  return tensor;
}

// Returns a state of a few KiB, whose values depend on `seed`.
inline State small_state(std::uint64_t seed = 1) {
  return {make_tensor("wte.weight", DType::f32, {13, 10}, seed),
          make_tensor("h.0.bias", DType::bf16, {33}, seed + 1),
          make_tensor("h.0.cube", DType::f32, {3, 4, 5}, seed + 2),
          make_tensor("h.0.deep", DType::f64, {2, 3, 2, 5}, seed + 3),
          make_tensor("scalar", DType::i64, {}, seed + 4),
          make_tensor("empty", DType::f32, {0, 3}, seed + 5),
          make_tensor("bytes", DType::u8, {17}, seed + 6),
          make_tensor("optimizer.m.wte.weight", DType::f32, {13, 10}, seed + 7)};
}

// Returns a state of several digest blocks, with tensors that cross their boundaries.
inline State large_state(std::uint64_t seed = 1) {
  return {make_tensor("a", DType::f32, {701, 1001}, seed), make_tensor("b", DType::u8, {99}, seed),
          make_tensor("c", DType::bf16, {1500, 1003}, seed + 1),
          make_tensor("optimizer.m.a", DType::f32, {701, 1001}, seed + 2)};
}

// Returns the extent of part `part` of `parts`; an empty one is not saved.
using Cut = std::function<Extent(const Shape& shape, int part, int parts)>;

inline std::int64_t share(std::int64_t n, int part, int parts) { return n * part / parts; }

inline Extent cut_axis(const Shape& shape, int axis, int part, int parts) {
  Extent extent = Extent::whole(shape);
  if (shape.rank() <= axis) {
    return part == 0 ? extent : Extent::flat(0, 0);
  }
  const auto a = static_cast<std::size_t>(axis);
  extent.start[a] = share(shape[axis], part, parts);
  extent.length[a] = share(shape[axis], part + 1, parts) - extent.start[a];
  return extent;
}

inline Extent cut_rows(const Shape& shape, int part, int parts) {
  return cut_axis(shape, 0, part, parts);
}
inline Extent cut_columns(const Shape& shape, int part, int parts) {
  return cut_axis(shape, shape.rank() > 1 ? 1 : 0, part, parts);
}
inline Extent cut_flat(const Shape& shape, int part, int parts) {
  const std::int64_t first = share(shape.elements(), part, parts);
  return Extent::flat(first, share(shape.elements(), part + 1, parts) - first);
}
// Puts everything into part 0.
inline Extent cut_nothing(const Shape& shape, int part, int) {
  return part == 0 ? Extent::whole(shape) : Extent::flat(0, 0);
}
// Puts each whole tensor into one of the parts.
inline Extent cut_by_tensor(const Shape& shape, int part, int parts) {
  return shape.elements() % parts == part ? Extent::whole(shape) : Extent::flat(0, 0);
}
// Cuts the first two axes into a grid, for 4 parts.
inline Extent cut_grid(const Shape& shape, int part, int parts) {
  if (shape.rank() < 2 || parts != 4) {
    return cut_flat(shape, part, parts);
  }
  const Extent rows = cut_axis(shape, 0, part / 2, 2);
  const Extent columns = cut_axis(shape, 1, part % 2, 2);
  Extent extent = rows;
  extent.start[1] = columns.start[1];
  extent.length[1] = columns.length[1];
  return extent;
}

struct NamedCut {
  const char* name;
  Cut cut;
  int ranks;
};
inline const std::vector<NamedCut>& all_cuts() {
  static const std::vector<NamedCut> cuts = {
      {"whole1", cut_nothing, 1}, {"whole2", cut_nothing, 2}, {"tensors3", cut_by_tensor, 3},
      {"rows2", cut_rows, 2},     {"rows5", cut_rows, 5},     {"columns3", cut_columns, 3},
      {"flat2", cut_flat, 2},     {"flat7", cut_flat, 7},     {"grid4", cut_grid, 4}};
  return cuts;
}

// Holds a part's blocks in buffers of their own. Every second part has gaps between the rows of its
// boxes, as if other columns were there.
struct Blocks {
  std::vector<std::vector<std::byte>> buffers;
  std::vector<TensorBlock> list;
};

inline Blocks cut_state(const State& state, const Cut& cut, int part, int parts) {
  Blocks blocks;
  for (const LogicalTensor& tensor : state) {
    const Extent extent = cut(tensor.shape, part, parts);
    const bool is_part = extent.elements() > 0 || (tensor.shape.elements() == 0 && part == 0);
    if (!is_part) {
      continue;
    }
    const auto size = static_cast<std::size_t>(size_of(tensor.dtype));
    const bool spaced =
        extent.kind == Extent::Kind::box && tensor.shape.rank() > 0 && part % 2 == 1;
    const std::int64_t pitch = spaced ? extent.length.back() + 3 : 0;
    const BlockRows rows = block_rows(extent, pitch);
    const std::int64_t span = rows.span(extent.elements());
    std::vector<std::byte> buffer(static_cast<std::size_t>(span) * size + 1, std::byte{0xA5});
    for (const Run1d& run : runs_of(extent, tensor.shape)) {
      for (std::int64_t i = 0; i < run.elements; ++i) {
        std::memcpy(buffer.data() + static_cast<std::size_t>(rows.at(run.block_first + i)) * size,
                    tensor.bytes.data() + static_cast<std::size_t>(run.whole_first + i) * size,
                    size);
      }
    }
    const View view{buffer.data(), span, tensor.dtype};
    blocks.list.push_back({tensor.name, tensor.shape, extent, view, pitch});
    blocks.buffers.push_back(std::move(buffer));
  }
  return blocks;
}

inline CheckpointMeta meta_of(std::int64_t step) {
  CheckpointMeta meta;
  meta.step = step;
  meta.samples = 32 * step;
  meta.config = JsonValue::parse(R"({"model": {"hidden": 10, "layers": 1}, "name": "sample"})");
  meta.numerics = JsonValue::parse(R"({"isa": "avx2"})");
  meta.extra = JsonValue::parse(R"({"note": "äöü \" \\ "})");
  return meta;
}

inline DiskOptions options_for(const std::filesystem::path& folder) {
  DiskOptions options{.folder = folder};
  options.copy_threads = 2;
  options.io.threads = 2;
  options.retention.keep = 10;
  return options;
}

// Saves in a run of its own and returns the outcome of rank 0.
inline SaveOutcome save_state(const DiskOptions& options, const State& state, std::int64_t step,
                              const Cut& cut = cut_nothing, int ranks = 1) {
  SaveOutcome result;
  ThreadWorld(ranks).run([&](Communicator& comm) {
    const Blocks blocks = cut_state(state, cut, comm.rank(), comm.size());
    DiskTarget target(comm, options);
    CheckpointWriter writer(comm, target);
    writer.save(meta_of(step), blocks.list);
    const auto outcome = writer.finish();
    if (comm.rank() == 0) {
      result = outcome.value();
    }
  });
  return result;
}

inline SaveOutcome save_state(const std::filesystem::path& folder, const State& state,
                              std::int64_t step, const Cut& cut = cut_nothing, int ranks = 1) {
  return save_state(options_for(folder), state, step, cut, ranks);
}

struct LoadedState {
  std::optional<Resumed> resumed;  // rank 0's
  bool equal = false;              // whether every rank got the bytes of the state
};

// Loads with the cut and compares each rank's blocks with those of `expected`. keys: those that
// open encrypted steps; null if none are given.
inline LoadedState load_state(const std::filesystem::path& folder, const State& expected,
                              const Cut& cut = cut_nothing, int ranks = 1,
                              const ResumeOptions& given = {}, const KeyOptions* keys = nullptr) {
  LoadedState result;
  std::atomic<int> equal = 0;
  ThreadWorld(ranks).run([&](Communicator& comm) {
    Blocks blocks = cut_state(expected, cut, comm.rank(), comm.size());
    const auto wanted = blocks.buffers;
    for (auto& buffer : blocks.buffers) {
      std::fill(buffer.begin(), buffer.end() - 1, std::byte{0xA5});
    }
    ResumeOptions options = given;
    std::optional<StepKeys> opened;
    if (keys != nullptr) {
      opened.emplace(comm, *keys);
      options.keys = &*opened;
    }
    const auto resumed = resume(comm, folder, blocks.list, options);
    equal += resumed && blocks.buffers == wanted ? 1 : 0;
    if (comm.rank() == 0) {
      result.resumed = resumed;
    }
  });
  result.equal = equal == ranks;
  return result;
}

inline std::string digest_of(const std::filesystem::path& step_folder,
                             DigestScope scope = DigestScope::all) {
  const StepFolder step = inspect_step(step_folder);
  return step.manifest ? logical_digest(step.path, *step.manifest, scope) : step.problem;
}

inline std::filesystem::path step_path(const std::filesystem::path& folder, std::int64_t step) {
  return folder /
         ("step-" + std::string(8 - std::to_string(step).size(), '0') + std::to_string(step));
}

// Returns the names in a folder, sorted.
inline std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace trireme
