#include "src/interchange/export_gguf.h"

#include <algorithm>
#include <array>
#include <map>
#include <span>

#include "io/checkpoint/exported_metadata.h"
#include "io/checkpoint/names.h"
#include "io/checkpoint/workers.h"
#include "io/tokens/tokenizer_files.h"
#include "mpi/agreement.h"
#include "src/base/error.h"
#include "src/base/stopwatch.h"
#include "src/interchange/draft_folder.h"
#include "src/interchange/elements.h"
#include "src/interchange/gguf_file.h"
#include "src/interchange/gguf_layout.h"
#include "src/interchange/gguf_vocabulary.h"
#include "src/interchange/tokenizer_fault.h"
#include "src/interchange/training_tokenizer.h"
#include "src/nn/model_size.h"
#include "src/train/text/text_origin.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

constexpr const char* kGgufName = "model.gguf";
constexpr const char* kDivisorsName = "rope_freqs.weight";

// The relative difference of logits that a type may cause; a mistake in a layout causes more
// than 1.
double most_difference_of(GgufType type) {
  switch (type) {
    case GgufType::f32:
      return 1e-3;
    case GgufType::q4_0:
    case GgufType::q4_k:
      return 0.7;
    default:
      return 0.1;
  }
}

std::string_view type_word(GgufType type) {
  switch (type) {
    case GgufType::f32:
      return "float32";
    case GgufType::f16:
      return "float16";
    case GgufType::bf16:
      return "bfloat16";
    case GgufType::q8_0:
      return "q8_0";
    case GgufType::q4_0:
      return "q4_0";
    case GgufType::q4_k:
      return "q4_k";
  }
  return "";
}

// Halves beyond 65504 are infinite.
void check_range(const GgufPart& part, std::span<const float> elements, GgufType type) {
  if (type == GgufType::f32 || type == GgufType::bf16) {
    return;
  }
  // A block's scale is at most its largest magnitude over 8.
  const float most = type == GgufType::f16 ? 65504.0F : 65504.0F * 8;
  for (const float x : elements) {
    if (std::abs(x) > most) {
      throw DataError(fmt::format("tensor {}: {} is too large for this type: export it as bf16",
                                  part.source.name, x));
    }
  }
}

// Quantizes rows in parallel. elements: of the part, in the file's order.
void quantize_rows(const GgufPart& part, std::span<const float> elements, GgufType type,
                   std::byte* to) {
  const std::int64_t row = part.shape().back();
  const std::int64_t rows = std::ssize(elements) / row;
  const int threads = available_processors();
  parallel_for(threads, threads, [&](std::int64_t i) {
    const std::int64_t first = rows * i / threads * row;
    const std::int64_t count = rows * (i + 1) / threads * row - first;
    const std::span<const float> own =
        elements.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
    check_range(part, own, type);
    quantize(type, own.data(), count, to + quantized_bytes(type, first));
  });
}

// Says how the model has seen texts: one that learned a tokenizer from new weights, or instead of
// its first one, has never seen what the tokenizer's template puts in front of them.
GgufTextHabits habits_of(const CheckpointWeights& weights, const ModelTokenizer& tokenizer) {
  TextOrigin origin = text_origin_of(weights.step(), weights.base(), weights.model().vocab);
  return {.ends = std::move(origin.ends),
          .has_no_other_ends = origin.has_no_other_ends,
          .begins = tokenizer.is_imported};
}

// Returns the tokenizer of the weights, for a file beside which the carried files lie.
GgufVocabulary vocabulary_of(const CheckpointWeights& weights, const ModelTokenizer& tokenizer,
                             const fs::path& folder) {
  const std::int64_t rows = weights.model().vocab;
  if (holds_tokenizer(folder)) {
    try {
      return gguf_vocabulary(read_tokenizer_files(folder), rows, habits_of(weights, tokenizer));
    } catch (const Error& error) {
      return no_gguf_vocabulary(without_folder(error.what(), folder));
    }
  }
  return tokenizer.is_bytes ? gguf_byte_vocabulary(rows)
                            : no_gguf_vocabulary("the checkpoint has none");
}

// Says in the result what the file has of the tokenizer.
void add_vocabulary(const GgufVocabulary& vocabulary, ExportResult& result) {
  result.tokenizer = vocabulary.summary;
  for (const std::string& what : vocabulary.otherwise) {
    result.notes.push_back("llama.cpp differs: " + what);
  }
  if (!vocabulary.missing.empty() && result.warning.empty()) {
    result.warning = fmt::format(
        "the file has no tokenizer, so that llama.cpp takes and gives token ids only: {}",
        vocabulary.missing);
  }
}

class GgufExport {
 public:
  GgufExport(CheckpointWeights& weights, GgufType type, const std::string& name,
             GgufVocabulary vocabulary)
      : weights_(weights), type_(type), parts_(gguf_parts(weights.model(), weights.tensors())) {
    head_.values = gguf_values(weights.model(), name, type);
    head_.values.merge(vocabulary.values);
    for (const auto& [fact, value] : exported_facts(weights.step())) {
      head_.values["trireme." + fact] = value;
    }
    for (const GgufPart& part : parts_) {
      head_.tensors.push_back({part.name, part.shape(), type_of_part(part, type), 0});
    }
    if (weights.model().rope_scaling.factor != 0) {
      head_.tensors.push_back({kDivisorsName, {weights.model().head_dim / 2}, GgufType::f32, 0});
    }
  }

  // Returns how many matrices have rows that are not whole blocks of the type, by the type that
  // they have instead.
  std::map<std::string, std::int64_t> other_types() const {
    std::map<std::string, std::int64_t> matrices;
    for (const GgufPart& part : parts_) {
      const GgufType type = type_of_part(part, type_);
      if (type != type_ && type != GgufType::f32) {
        ++matrices[std::string(type_word(type))];
      }
    }
    return matrices;
  }

  // Returns the number of bytes. Each part is written while the next one is read and quantized.
  std::int64_t write(const fs::path& path) {
    const std::string text = encode_gguf_head(head_);
    File file = File::create_new(path);
    file.write(text.data(), std::ssize(text));
    Buffers buffers;
    std::span<const std::byte> made;
    for (std::size_t i = 0; i <= parts_.size(); ++i) {
      std::span<const std::byte> next;
      parallel_for(2, 2, [&](std::int64_t task) {
        if (task == 0) {
          append(file, made);
        } else if (i < parts_.size()) {
          next = make_part(parts_[i], buffers, buffers.made[i % 2]);
        }
      });
      made = next;
    }
    if (head_.tensors.size() > parts_.size()) {
      const std::vector<float> divisors = rope_divisors(weights_.model());
      std::vector<std::byte> bytes(divisors.size() * sizeof(float));
      quantize(GgufType::f32, divisors.data(), std::ssize(divisors), bytes.data());
      append(file, bytes);
    }
    file.sync();
    const std::int64_t bytes = file.size();
    file.close();
    return bytes;
  }

  // Reads the file back. Queries and keys stay in the file's order, for which the other kind of
  // rotation is right: the comparison must not undo a wrong order with the same mistake.
  ForeignWeights written(const fs::path& path) const {
    const ReadWeight read = [this,
                             file = std::make_shared<GgufFile>(path)](const std::string& name) {
      const auto part = std::find_if(parts_.begin(), parts_.end(), [&](const GgufPart& each) {
        return each.is_tied_head ? name == "lm_head.weight" : each.source.name == name;
      });
      check(part != parts_.end(), "only tensors of the model are read");
      std::vector<float> elements = file->read(part->name);
      return part->layout == GgufPart::Layout::pairs ? elements
                                                     : from_gguf_layout(*part, std::move(elements));
    };
    return {read, weights_.model().qkv_bias ? RotaryPairs::halves : RotaryPairs::neighbours,
            gguf_model(weights_.model())};
  }

 private:
  // Kept for all parts, because the system zeroes the pages of a new one.
  struct Buffers {
    std::vector<float> read;                     // in the model's order
    std::vector<float> ordered;                  // in the file's, where that is another one
    std::array<std::vector<std::byte>, 2> made;  // for the file: one is written, one is filled
  };

  // Returns `count` elements of the buffer, with any values.
  template <class T>
  static std::span<T> first_of(std::vector<T>& buffer, std::int64_t count) {
    if (std::ssize(buffer) < count) {
      buffer = std::vector<T>();  // frees its memory first
      buffer.resize(static_cast<std::size_t>(count));
    }
    return {buffer.data(), static_cast<std::size_t>(count)};
  }

  // Returns the bytes of the part for the file, which are in `made`.
  std::span<const std::byte> make_part(const GgufPart& part, Buffers& buffers,
                                       std::vector<std::byte>& made) {
    const GgufType type = type_of_part(part, type_);
    const std::int64_t count = part.source.shape.elements();
    std::span<float> elements = first_of(buffers.read, count);
    weights_.read(part.source, 0, count, elements.data());
    if (part.layout != GgufPart::Layout::same || part.scaled > 0) {
      const std::span<float> ordered = first_of(buffers.ordered, count);
      to_gguf_layout(part, elements.data(), ordered.data());
      elements = ordered;
    }
    const std::span<std::byte> bytes = first_of(made, quantized_bytes(type, count));
    quantize_rows(part, elements, type, bytes.data());
    return bytes;
  }

  static void append(File& file, std::span<const std::byte> bytes) {
    constexpr std::array<std::byte, kGgufAlignment> kPadding{};
    file.write(bytes.data(), std::ssize(bytes));
    file.write(kPadding.data(), round_up(std::ssize(bytes), kGgufAlignment) - std::ssize(bytes));
  }

  CheckpointWeights& weights_;
  GgufType type_;
  std::vector<GgufPart> parts_;
  GgufHead head_;
};

}  // namespace

ExportResult export_to_gguf(const ExportOptions& options, GgufType type, Communicator& world,
                            StepKeys& keys) {
  CheckpointWeights weights = open_weights(options, world, keys);
  check_gguf_model(weights.model());
  const StepFolder& step = weights.step();
  ExportResult result{.checkpoint = step.path,
                      .step = step.manifest->meta.step,
                      .tensors = std::ssize(weights.tensors()),
                      .parameters = parameter_count(weights.model()),
                      .type_name = std::string(type_word(type))};
  const Stopwatch watch;
  DraftFolder draft(world, options.out);
  run_on_root(world, [&]() -> std::string {
    const ModelTokenizer tokenizer = find_model_tokenizer(weights);
    carry_tokenizer(tokenizer, draft.path(), result);
    GgufVocabulary vocabulary = vocabulary_of(weights, tokenizer, draft.path());
    add_vocabulary(vocabulary, result);
    GgufExport file(weights, type, fs::absolute(options.out).filename().string(),
                    std::move(vocabulary));
    result.bytes = file.write(draft.path() / kGgufName);
    result.other_types = file.other_types();
    result.seconds = watch.seconds();
    if (options.compare) {
      result.difference = compare_logits(weights.model(), file.written(draft.path() / kGgufName),
                                         step.path, keys.options(), options.weights);
      check_difference(result.difference, most_difference_of(type), options.out.string());
    }
    finish_export(options, draft, step);
    return "";
  });
  return result;
}

}  // namespace trireme
