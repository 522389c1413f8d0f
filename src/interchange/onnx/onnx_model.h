// OnnxModel is a model of ONNX: a graph of operators with its weights, which may lie in a file
// beside it. Reads and writes the part of onnx.proto that exports need. Plain values and pure
// functions.
//
// Format: github.com/onnx/onnx, onnx/onnx.proto, IR version 8 with operator set 17; its encoding is
// that of Protocol Buffers (protobuf.dev, "Encoding").
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace trireme {

// The numbers of onnx.proto.
enum class OnnxType : std::uint8_t { f32 = 1, i64 = 7, boolean = 9, f16 = 10, bf16 = 16 };
// Returns the bytes of an element.
std::int64_t onnx_bytes(OnnxType type);

struct OnnxAttribute {
  std::string name;
  std::variant<std::int64_t, float, std::vector<std::int64_t>> value;
  friend bool operator==(const OnnxAttribute&, const OnnxAttribute&) = default;
};

struct OnnxNode {
  std::string op;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::vector<OnnxAttribute> attributes;
  friend bool operator==(const OnnxNode&, const OnnxNode&) = default;
};

// Row-major and little-endian; either in `bytes` or in a file beside the model.
struct OnnxTensor {
  std::string name;
  OnnxType type = OnnxType::f32;
  std::vector<std::int64_t> shape;
  std::string bytes = {};
  std::string file = {};  // "" if the elements are in `bytes`
  std::int64_t offset = 0;
  std::int64_t elements() const;
  friend bool operator==(const OnnxTensor&, const OnnxTensor&) = default;
};

// An input or output of the graph; a dimension has a size or a name.
struct OnnxValue {
  std::string name;
  OnnxType type = OnnxType::f32;
  std::vector<std::variant<std::int64_t, std::string>> shape;
  friend bool operator==(const OnnxValue&, const OnnxValue&) = default;
};

struct OnnxModel {
  std::string name;
  std::vector<OnnxNode> nodes;  // each after those that it reads from
  std::vector<OnnxTensor> tensors;
  std::vector<OnnxValue> inputs;
  std::vector<OnnxValue> outputs;
  std::map<std::string, std::string> metadata;
  friend bool operator==(const OnnxModel&, const OnnxModel&) = default;
};

// Returns the bytes of model.onnx.
std::string encode_onnx(const OnnxModel& model);
// Throws DataError if the text is damaged, or has something that encode_onnx() does not write.
OnnxModel parse_onnx(std::string_view text);

}  // namespace trireme
