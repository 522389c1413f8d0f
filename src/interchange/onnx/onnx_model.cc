#include "src/interchange/onnx/onnx_model.h"

#include "src/interchange/onnx/onnx_fields.h"
#include "src/interchange/onnx/protobuf.h"

namespace trireme {
namespace {

ProtoMessage pair_of(const std::string& key, const std::string& value) {
  ProtoMessage m;
  m.text(1, key);
  m.text(2, value);
  return m;
}

ProtoMessage encoded(const OnnxAttribute& attribute) {
  ProtoMessage m;
  m.text(attribute_field::kName, attribute.name);
  if (const auto* real = std::get_if<float>(&attribute.value)) {
    m.real(attribute_field::kFloat, *real);
    m.number(attribute_field::kType, kFloatAttribute);
  } else if (const auto* integer = std::get_if<std::int64_t>(&attribute.value)) {
    m.number(attribute_field::kInt, *integer);
    m.number(attribute_field::kType, kIntAttribute);
  } else {
    for (const std::int64_t each : std::get<std::vector<std::int64_t>>(attribute.value)) {
      m.number(attribute_field::kInts, each);
    }
    m.number(attribute_field::kType, kIntsAttribute);
  }
  return m;
}

ProtoMessage encoded(const OnnxNode& node) {
  ProtoMessage m;
  for (const std::string& input : node.inputs) {
    m.text(node_field::kInput, input);
  }
  for (const std::string& output : node.outputs) {
    m.text(node_field::kOutput, output);
  }
  m.text(node_field::kName, node.outputs.front());
  m.text(node_field::kOp, node.op);
  for (const OnnxAttribute& attribute : node.attributes) {
    m.message(node_field::kAttribute, encoded(attribute));
  }
  return m;
}

ProtoMessage encoded(const OnnxTensor& tensor) {
  ProtoMessage m;
  for (const std::int64_t extent : tensor.shape) {
    m.number(tensor_field::kDim, extent);
  }
  m.number(tensor_field::kType, static_cast<std::int64_t>(tensor.type));
  m.text(tensor_field::kName, tensor.name);
  if (tensor.file.empty()) {
    m.text(tensor_field::kRaw, tensor.bytes);
    return m;
  }
  m.message(tensor_field::kEntry, pair_of("location", tensor.file));
  m.message(tensor_field::kEntry, pair_of("offset", std::to_string(tensor.offset)));
  m.message(tensor_field::kEntry,
            pair_of("length", std::to_string(tensor.elements() * onnx_bytes(tensor.type))));
  m.number(tensor_field::kLocation, kExternal);
  return m;
}

// ValueInfoProto with a TypeProto.Tensor.
ProtoMessage encoded(const OnnxValue& value) {
  ProtoMessage shape;
  for (const auto& extent : value.shape) {
    ProtoMessage dimension;
    if (const auto* size = std::get_if<std::int64_t>(&extent)) {
      dimension.number(1, *size);
    } else {
      dimension.text(2, std::get<std::string>(extent));
    }
    shape.message(1, dimension);
  }
  ProtoMessage tensor;
  tensor.number(1, static_cast<std::int64_t>(value.type));
  tensor.message(2, shape);
  ProtoMessage type;
  type.message(1, tensor);
  ProtoMessage m;
  m.text(1, value.name);
  m.message(2, type);
  return m;
}

}  // namespace

std::int64_t onnx_bytes(OnnxType type) {
  switch (type) {
    case OnnxType::f32:
      return 4;
    case OnnxType::i64:
      return 8;
    case OnnxType::boolean:
      return 1;
    default:
      return 2;
  }
}

std::int64_t OnnxTensor::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t extent : shape) {
    product *= extent;
  }
  return product;
}

std::string encode_onnx(const OnnxModel& model) {
  ProtoMessage graph;
  for (const OnnxNode& node : model.nodes) {
    graph.message(graph_field::kNode, encoded(node));
  }
  graph.text(graph_field::kName, model.name);
  for (const OnnxTensor& tensor : model.tensors) {
    graph.message(graph_field::kTensor, encoded(tensor));
  }
  for (const OnnxValue& value : model.inputs) {
    graph.message(graph_field::kInput, encoded(value));
  }
  for (const OnnxValue& value : model.outputs) {
    graph.message(graph_field::kOutput, encoded(value));
  }
  ProtoMessage operators;  // of the domain "", ONNX's own
  operators.text(1, "");
  operators.number(2, kOperatorSet);
  ProtoMessage m;
  m.number(model_field::kIr, kIrVersion);
  m.text(model_field::kProducer, "trireme");
  m.message(model_field::kGraph, graph);
  m.message(model_field::kOperatorSets, operators);
  for (const auto& [key, value] : model.metadata) {
    m.message(model_field::kMetadata, pair_of(key, value));
  }
  return m.bytes();
}

}  // namespace trireme
