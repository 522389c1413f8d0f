#include "src/interchange/onnx/graph_builder.h"

#include <cstring>

namespace trireme {
namespace {

constexpr std::int64_t kAlignment = 4096;

}  // namespace

std::string GraphBuilder::node(const std::string& op, std::vector<std::string> inputs,
                               const std::string& output, std::vector<OnnxAttribute> attributes) {
  nodes(op, std::move(inputs), {output}, std::move(attributes));
  return output;
}

void GraphBuilder::nodes(const std::string& op, std::vector<std::string> inputs,
                         std::vector<std::string> outputs, std::vector<OnnxAttribute> attributes) {
  graph_.model.nodes.push_back({op, std::move(inputs), std::move(outputs), std::move(attributes)});
}

void GraphBuilder::constant(const std::string& name, OnnxType type, std::vector<std::int64_t> shape,
                            const void* data) {
  if (!names_.insert(name).second) {
    return;
  }
  OnnxTensor tensor{.name = name, .type = type, .shape = std::move(shape)};
  tensor.bytes.assign(static_cast<const char*>(data),
                      static_cast<std::size_t>(tensor.elements() * onnx_bytes(type)));
  graph_.model.tensors.push_back(std::move(tensor));
}

std::string GraphBuilder::integer(const std::string& name, std::int64_t value) {
  constant(name, OnnxType::i64, {}, &value);
  return name;
}

std::string GraphBuilder::integers(const std::string& name,
                                   const std::vector<std::int64_t>& values) {
  constant(name, OnnxType::i64, {std::ssize(values)}, values.data());
  return name;
}

std::string GraphBuilder::real(const std::string& name, float value) {
  constant(name, OnnxType::f32, {}, &value);
  return name;
}

std::string GraphBuilder::reals(const std::string& name, std::vector<std::int64_t> shape,
                                const std::vector<float>& values) {
  constant(name, OnnxType::f32, std::move(shape), values.data());
  return name;
}

std::string GraphBuilder::weight(const std::string& source, OnnxType type,
                                 std::vector<std::int64_t> shape, bool is_transposed) {
  OnnxTensor tensor{.name = source,
                    .type = type,
                    .shape = std::move(shape),
                    .bytes = {},
                    .file = data_file_,
                    .offset = graph_.data_bytes};
  const std::int64_t bytes = tensor.elements() * onnx_bytes(type);
  graph_.data_bytes += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  graph_.weights.push_back({source, is_transposed, graph_.model.tensors.size()});
  graph_.model.tensors.push_back(std::move(tensor));
  return source;
}

std::string GraphBuilder::vector(const std::string& source, std::int64_t size) {
  return weight(source, OnnxType::f32, {size}, false);
}

std::string GraphBuilder::stored(const std::string& source, std::vector<std::int64_t> shape) {
  return weight(source, type_, std::move(shape), false);
}

std::string GraphBuilder::transposed(const std::string& source,
                                     const std::vector<std::int64_t>& shape) {
  return weight(source, type_, {shape.at(1), shape.at(0)}, true);
}

std::string GraphBuilder::widened(const std::string& value) {
  return type_ == OnnxType::f32 ? value
                                : node("Cast", {value}, value + "/f32", {to(OnnxType::f32)});
}

}  // namespace trireme
