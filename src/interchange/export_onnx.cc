#include "src/interchange/export_onnx.h"

#include "io/checkpoint/exported_metadata.h"
#include "io/checkpoint/names.h"
#include "io/checkpoint/workers.h"
#include "mpi/agreement.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/stopwatch.h"
#include "src/interchange/draft_folder.h"
#include "src/interchange/elements.h"
#include "src/interchange/onnx/onnx_graph.h"
#include "src/interchange/onnx/onnx_interpreter.h"
#include "src/nn/model_size.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

constexpr const char* kOnnxName = "model.onnx";
constexpr const char* kOnnxDataName = "model.onnx.data";
constexpr const char* kTritonVersion = "1";
constexpr std::int64_t kMostGraphBytes = 1 << 30;
constexpr double kMostFloatDifference = 1e-3;  // relative, of f32
constexpr double kMostRoundedDifference = 0.1;

DType dtype_of(OnnxType type) {
  return type == OnnxType::f16 ? DType::f16 : type == OnnxType::bf16 ? DType::bf16 : DType::f32;
}

std::string_view type_word(OnnxType type) {
  return type == OnnxType::f16 ? "float16" : type == OnnxType::bf16 ? "bfloat16" : "float32";
}

// Returns the elements of a matrix [rows,columns] as [columns,rows].
std::vector<float> transposed(const std::vector<float>& from, std::int64_t rows) {
  const std::int64_t columns = std::ssize(from) / rows;
  std::vector<float> to(from.size());
  const int threads = available_processors();
  parallel_for(threads, threads, [&](std::int64_t part) {
    for (std::int64_t column = columns * part / threads; column < columns * (part + 1) / threads;
         ++column) {
      for (std::int64_t row = 0; row < rows; ++row) {
        to[static_cast<std::size_t>(column * rows + row)] =
            from[static_cast<std::size_t>(row * columns + column)];
      }
    }
  });
  return to;
}

class OnnxExport {
 public:
  OnnxExport(CheckpointWeights& weights, OnnxType type)
      : weights_(weights), graph_(onnx_graph(weights.model(), type, kOnnxDataName)) {
    for (const auto& [fact, value] : exported_facts(weights.step())) {
      graph_.model.metadata["trireme_" + fact] = value;
    }
  }

  // Returns the number of bytes.
  std::int64_t write(const fs::path& folder) {
    const std::string text = encode_onnx(graph_.model);
    write_whole_file(folder / kOnnxName, text);
    File file = File::create_new(folder / kOnnxDataName);
    for (const OnnxWeight& weight : graph_.weights) {
      append(file, weight);
    }
    file.sync();
    file.close();
    return std::ssize(text) + graph_.data_bytes;
  }

 private:
  void append(File& file, const OnnxWeight& weight) {
    const OnnxTensor& tensor = graph_.model.tensors.at(weight.tensor);
    std::vector<float> elements = weights_.read(weight.source);
    if (weight.is_transposed) {
      elements = transposed(elements, tensor.shape.back());
    }
    const std::int64_t end = &weight == &graph_.weights.back()
                                 ? graph_.data_bytes
                                 : graph_.model.tensors.at((&weight + 1)->tensor).offset;
    std::vector<std::byte> bytes(static_cast<std::size_t>(end - tensor.offset));
    const std::int64_t wrong =
        narrow(elements.data(), std::ssize(elements), dtype_of(tensor.type), bytes.data());
    if (wrong < std::ssize(elements)) {
      throw DataError(fmt::format("tensor {}: {} is too large for this type: export it as bf16",
                                  weight.source, elements[static_cast<std::size_t>(wrong)]));
    }
    file.write(bytes.data(), std::ssize(bytes));
  }

  CheckpointWeights& weights_;
  OnnxGraph graph_;
};

// Reads both files back, and computes the logits with the graph.
ForeignLogits written_logits(const fs::path& folder) {
  return [folder](std::span<const std::int32_t> ids) {
    const OnnxModel model = parse_onnx(read_file(folder / kOnnxName, kMostGraphBytes));
    const File data = File::open_to_read(folder / kOnnxDataName);
    const ReadOnnxTensor read = [&](const OnnxTensor& tensor) {
      std::vector<std::byte> bytes(
          static_cast<std::size_t>(tensor.elements() * onnx_bytes(tensor.type)));
      data.read_exactly_at(tensor.offset, bytes.data(), std::ssize(bytes));
      std::vector<float> elements(static_cast<std::size_t>(tensor.elements()));
      widen(bytes.data(), dtype_of(tensor.type), tensor.elements(), elements.data());
      return elements;
    };
    return run_onnx(model, read, ids, available_processors());
  };
}

// The configuration of Triton's inference server (github.com/triton-inference-server, "Model
// Configuration"), whose model has the name of its folder.
std::string triton_config(const std::string& name, std::int64_t vocab) {
  return fmt::format(
      "name: \"{}\"\n"
      "backend: \"onnxruntime\"\n"
      "max_batch_size: 0\n"
      "input [ {{ name: \"input_ids\" data_type: TYPE_INT64 dims: [ -1, -1 ] }} ]\n"
      "output [ {{ name: \"logits\" data_type: TYPE_FP32 dims: [ -1, -1, {} ] }} ]\n",
      name, vocab);
}

// Names of models become folders, addresses and quoted texts there.
std::string triton_name(const fs::path& out) {
  const std::string name = fs::absolute(out).lexically_normal().filename().string();
  if (name.empty() ||
      name.find_first_not_of("abcdefghijklmnopqrstuvwxyz"
                             "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") != std::string::npos) {
    throw ConfigError(
        fmt::format("--out {}: the folder's name is that of the model in Triton: choose one of "
                    "letters, digits, '.', '_' and '-'",
                    out.string()));
  }
  return name;
}

}  // namespace

ExportResult export_to_onnx(const ExportOptions& options, OnnxType type, OnnxFolder folder,
                            Communicator& world, StepKeys& keys) {
  const bool triton = folder == OnnxFolder::triton;
  const std::string name = triton ? triton_name(options.out) : "";
  CheckpointWeights weights = open_weights(options, world, keys);
  const StepFolder& step = weights.step();
  ExportResult result{.checkpoint = step.path,
                      .step = step.manifest->meta.step,
                      .tensors = std::ssize(weights.tensors()),
                      .parameters = parameter_count(weights.model()),
                      .type_name = std::string(type_word(type))};
  const Stopwatch watch;
  DraftFolder draft(world, options.out);
  run_on_root(world, [&]() -> std::string {
    const fs::path files = triton ? draft.path() / kTritonVersion : draft.path();
    if (triton) {
      fs::create_directory(files);
      write_whole_file(draft.path() / "config.pbtxt", triton_config(name, weights.model().vocab));
    }
    OnnxExport file(weights, type);
    result.bytes = file.write(files);
    carry_tokenizer(find_model_tokenizer(weights), files, result);
    result.seconds = watch.seconds();
    if (options.compare) {
      result.difference = compare_logits(weights.model(), written_logits(files), step.path,
                                         keys.options(), options.weights);
      check_difference(result.difference,
                       type == OnnxType::f32 ? kMostFloatDifference : kMostRoundedDifference,
                       options.out.string());
    }
    finish_export(options, draft, step);
    return "";
  });
  return result;
}

}  // namespace trireme
