// Numbers of onnx.proto: of fields, by message, and of what has several kinds.
#pragma once

#include <cstdint>

namespace trireme {

inline constexpr std::int64_t kIrVersion = 8;
inline constexpr std::int64_t kOperatorSet = 17;
inline constexpr std::int64_t kExternal = 1;  // TensorProto.DataLocation

// AttributeProto.AttributeType.
inline constexpr std::int64_t kFloatAttribute = 1;
inline constexpr std::int64_t kIntAttribute = 2;
inline constexpr std::int64_t kIntsAttribute = 7;

// Numbers of fields, by message.
namespace model_field {
inline constexpr int kIr = 1, kProducer = 2, kGraph = 7, kOperatorSets = 8, kMetadata = 14;
}
namespace graph_field {
inline constexpr int kNode = 1, kName = 2, kTensor = 5, kInput = 11, kOutput = 12;
}
namespace node_field {
inline constexpr int kInput = 1, kOutput = 2, kName = 3, kOp = 4, kAttribute = 5;
}
namespace attribute_field {
inline constexpr int kName = 1, kFloat = 2, kInt = 3, kInts = 8, kType = 20;
}
namespace tensor_field {
inline constexpr int kDim = 1, kType = 2, kName = 8, kRaw = 9, kEntry = 13, kLocation = 14;
}

}  // namespace trireme
