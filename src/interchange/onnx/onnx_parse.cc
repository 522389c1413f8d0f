#include <fmt/format.h>

#include "src/base/error.h"
#include "src/interchange/onnx/onnx_fields.h"
#include "src/interchange/onnx/onnx_model.h"
#include "src/interchange/onnx/protobuf.h"

namespace trireme {
namespace {

constexpr std::int64_t kMostExtent = std::int64_t{1} << 40;

[[noreturn]] void unknown(const char* where, int field) {
  throw DataError(fmt::format("{} has the unknown field {}", where, field));
}

OnnxType type_of(std::int64_t number) {
  for (const OnnxType type :
       {OnnxType::f32, OnnxType::i64, OnnxType::boolean, OnnxType::f16, OnnxType::bf16}) {
    if (static_cast<std::int64_t>(type) == number) {
      return type;
    }
  }
  throw DataError(fmt::format("the element type {} is not supported", number));
}

std::pair<std::string, std::string> pair_of(std::string_view bytes) {
  std::pair<std::string, std::string> pair;
  for (const ProtoField& field : read_fields(bytes)) {
    (field.number == 1 ? pair.first : pair.second) = text_of(field, "an entry");
  }
  return pair;
}

OnnxAttribute parse_attribute(std::string_view bytes) {
  OnnxAttribute attribute;
  std::vector<std::int64_t> integers;
  std::int64_t integer = 0;
  float real = 0;
  std::int64_t type = 0;
  for (const ProtoField& field : read_fields(bytes)) {
    switch (field.number) {
      case attribute_field::kName:
        attribute.name = text_of(field, "an attribute's name");
        break;
      case attribute_field::kFloat:
        real = field.real;
        break;
      case attribute_field::kInt:
        integer = number_of(field, "an attribute");
        break;
      case attribute_field::kInts:
        integers.push_back(number_of(field, "an attribute"));
        break;
      case attribute_field::kType:
        type = number_of(field, "an attribute's type");
        break;
      default:
        unknown("an attribute", field.number);
    }
  }
  if (type == kFloatAttribute) {
    attribute.value = real;
  } else if (type == kIntAttribute) {
    attribute.value = integer;
  } else if (type == kIntsAttribute) {
    attribute.value = std::move(integers);
  } else {
    throw DataError(fmt::format("an attribute has the unknown type {}", type));
  }
  return attribute;
}

OnnxNode parse_node(std::string_view bytes) {
  OnnxNode node;
  for (const ProtoField& field : read_fields(bytes)) {
    const std::string text(text_of(field, "a part of a node"));
    switch (field.number) {
      case node_field::kInput:
        node.inputs.push_back(text);
        break;
      case node_field::kOutput:
        node.outputs.push_back(text);
        break;
      case node_field::kName:
        break;
      case node_field::kOp:
        node.op = text;
        break;
      case node_field::kAttribute:
        node.attributes.push_back(parse_attribute(text));
        break;
      default:
        unknown("a node", field.number);
    }
  }
  if (node.outputs.empty()) {
    throw DataError(fmt::format("a node '{}' has no output", node.op));
  }
  return node;
}

void parse_place(std::string_view bytes, OnnxTensor& tensor) {
  const auto [key, value] = pair_of(bytes);
  if (key == "location") {
    tensor.file = value;
  } else if (key == "offset") {
    if (value.empty() || value.size() > 15 ||
        value.find_first_not_of("0123456789") != std::string::npos) {
      throw DataError(fmt::format("the offset of tensor {} is not a number", tensor.name));
    }
    tensor.offset = std::stoll(value);
  } else if (key != "length") {
    throw DataError(fmt::format("tensor {} has the unknown entry '{}'", tensor.name, key));
  }
}

void check_size(const OnnxTensor& tensor) {
  std::int64_t elements = 1;
  for (const std::int64_t extent : tensor.shape) {
    if (extent < 1 || extent > kMostExtent / elements) {
      throw DataError(fmt::format("tensor {} has an impossible shape", tensor.name));
    }
    elements *= extent;
  }
  if (!tensor.file.empty() && !tensor.bytes.empty()) {
    throw DataError(fmt::format("tensor {} lies here and in a file", tensor.name));
  }
  if (tensor.file.empty() && std::ssize(tensor.bytes) != elements * onnx_bytes(tensor.type)) {
    throw DataError(fmt::format("tensor {} has {} bytes, but {} elements", tensor.name,
                                tensor.bytes.size(), elements));
  }
}

OnnxTensor parse_tensor(std::string_view bytes) {
  OnnxTensor tensor;
  for (const ProtoField& field : read_fields(bytes)) {
    switch (field.number) {
      case tensor_field::kDim:
        tensor.shape.push_back(number_of(field, "an extent"));
        break;
      case tensor_field::kType:
        tensor.type = type_of(number_of(field, "an element type"));
        break;
      case tensor_field::kName:
        tensor.name = text_of(field, "a tensor's name");
        break;
      case tensor_field::kRaw:
        tensor.bytes = text_of(field, "a tensor's bytes");
        break;
      case tensor_field::kEntry:
        parse_place(text_of(field, "a tensor's place"), tensor);
        break;
      case tensor_field::kLocation:
        break;
      default:
        unknown("a tensor", field.number);
    }
  }
  check_size(tensor);
  return tensor;
}

void parse_dimension(std::string_view bytes, OnnxValue& value) {
  for (const ProtoField& field : read_fields(bytes)) {
    if (field.number == 1) {
      value.shape.emplace_back(number_of(field, "an extent"));
    } else {
      value.shape.emplace_back(std::string(text_of(field, "an extent's name")));
    }
  }
}

// The fields that hold the messages are 1 and 2 at each level: see encoded().
OnnxValue parse_value(std::string_view bytes) {
  OnnxValue value;
  for (const ProtoField& field : read_fields(bytes)) {
    if (field.number == 1) {
      value.name = text_of(field, "a value's name");
      continue;
    }
    for (const ProtoField& type : read_fields(text_of(field, "a value's type"))) {
      for (const ProtoField& part : read_fields(text_of(type, "a tensor type"))) {
        if (part.number == 1) {
          value.type = type_of(number_of(part, "an element type"));
          continue;
        }
        for (const ProtoField& dimension : read_fields(text_of(part, "a shape"))) {
          parse_dimension(text_of(dimension, "a dimension"), value);
        }
      }
    }
  }
  return value;
}

void parse_graph(std::string_view bytes, OnnxModel& model) {
  for (const ProtoField& field : read_fields(bytes)) {
    const std::string_view text = text_of(field, "a part of the graph");
    switch (field.number) {
      case graph_field::kNode:
        model.nodes.push_back(parse_node(text));
        break;
      case graph_field::kName:
        model.name = text;
        break;
      case graph_field::kTensor:
        model.tensors.push_back(parse_tensor(text));
        break;
      case graph_field::kInput:
        model.inputs.push_back(parse_value(text));
        break;
      case graph_field::kOutput:
        model.outputs.push_back(parse_value(text));
        break;
      default:
        unknown("the graph", field.number);
    }
  }
}

}  // namespace

OnnxModel parse_onnx(std::string_view text) {
  OnnxModel model;
  for (const ProtoField& field : read_fields(text)) {
    switch (field.number) {
      case model_field::kIr:
        if (number_of(field, "the version") != kIrVersion) {
          throw DataError(
              fmt::format("it has IR version {}; {} is known", field.value, kIrVersion));
        }
        break;
      case model_field::kProducer:
      case model_field::kOperatorSets:
        break;
      case model_field::kGraph:
        parse_graph(text_of(field, "the graph"), model);
        break;
      case model_field::kMetadata:
        model.metadata.insert(pair_of(text_of(field, "metadata")));
        break;
      default:
        unknown("the model", field.number);
    }
  }
  return model;
}

}  // namespace trireme
