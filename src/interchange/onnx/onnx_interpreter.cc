#include "src/interchange/onnx/onnx_interpreter.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "src/base/error.h"
#include "src/interchange/onnx/onnx_operators.h"

namespace trireme {
namespace {

template <class T>
const T& attribute(const OnnxNode& node, const char* name) {
  for (const OnnxAttribute& each : node.attributes) {
    if (each.name == name && std::holds_alternative<T>(each.value)) {
      return std::get<T>(each.value);
    }
  }
  throw DataError(fmt::format("the attribute {} is missing", name));
}

std::int64_t integer_attribute(const OnnxNode& node, const char* name) {
  return attribute<std::int64_t>(node, name);
}

class Interpreter {
 public:
  Interpreter(const OnnxModel& model, const ReadOnnxTensor& read, int threads)
      : model_(model), read_(read), threads_(threads) {
    for (const OnnxTensor& tensor : model.tensors) {
      tensors_.emplace(tensor.name, &tensor);
    }
    for (std::size_t i = 0; i < model.nodes.size(); ++i) {
      for (const std::string& input : model.nodes[i].inputs) {
        last_use_[input] = i;
      }
    }
  }

  std::vector<double> run(std::span<const std::int32_t> ids) {
    if (model_.inputs.size() != 1 || model_.outputs.empty()) {
      throw DataError("the graph needs other inputs or outputs than a text's");
    }
    values_[model_.inputs.front().name] = {{1, std::ssize(ids)}, {ids.begin(), ids.end()}, {}};
    for (std::size_t i = 0; i < model_.nodes.size(); ++i) {
      const OnnxNode& node = model_.nodes[i];
      try {
        compute(node);
      } catch (const DataError& error) {
        throw DataError(fmt::format("{} ({}): {}", node.outputs.front(), node.op, error.what()));
      }
      for (const std::string& input : node.inputs) {
        if (last_use_.at(input) == i) {
          values_.erase(input);
        }
      }
    }
    const auto output = values_.find(model_.outputs.front().name);
    if (output == values_.end()) {
      throw DataError("no node computes the output");
    }
    return output->second.values;
  }

 private:
  // Weights are read when a node needs them; they are not kept.
  OnnxArray input(const OnnxNode& node, std::size_t i) {
    if (i >= node.inputs.size()) {
      throw DataError(fmt::format("it has {} inputs", node.inputs.size()));
    }
    const std::string& name = node.inputs[i];
    if (const auto value = values_.find(name); value != values_.end()) {
      return last_use_.at(name) == position_of(node) && used_once(node, name)
                 ? std::move(value->second)
                 : value->second;
    }
    const auto tensor = tensors_.find(name);
    if (tensor == tensors_.end()) {
      throw DataError(fmt::format("nothing is called {}", name));
    }
    return loaded(*tensor->second);
  }

  std::size_t position_of(const OnnxNode& node) const {
    return static_cast<std::size_t>(&node - model_.nodes.data());
  }
  static bool used_once(const OnnxNode& node, const std::string& name) {
    return std::count(node.inputs.begin(), node.inputs.end(), name) == 1;
  }

  OnnxArray loaded(const OnnxTensor& tensor) const {
    OnnxArray array{tensor.shape, {}, {}};
    if (!tensor.file.empty()) {
      array.weights = read_(tensor);
      return array;
    }
    const auto append = [&]<class T>(T) {
      for (std::size_t at = 0; at + sizeof(T) <= tensor.bytes.size(); at += sizeof(T)) {
        T value = 0;
        std::memcpy(&value, tensor.bytes.data() + at, sizeof value);
        array.values.push_back(static_cast<double>(value));
      }
    };
    if (tensor.type == OnnxType::f32) {
      append(0.0F);
    } else if (tensor.type == OnnxType::i64) {
      append(std::int64_t{0});
    } else {
      throw DataError(fmt::format("the constant {} has another type", tensor.name));
    }
    return array;
  }

  void compute(const OnnxNode& node) {
    if (node.op == "Split") {
      std::vector<OnnxArray> parts = split(input(node, 0), integers_of(input(node, 1)));
      if (parts.size() != node.outputs.size()) {
        throw DataError("as many outputs as parts are needed");
      }
      for (std::size_t i = 0; i < parts.size(); ++i) {
        values_[node.outputs[i]] = std::move(parts[i]);
      }
      return;
    }
    if (node.outputs.size() != 1) {
      throw DataError("it has several outputs");
    }
    OnnxArray result = node.inputs.size() == 1 ? of_one(node) : of_several(node);
    values_[node.outputs.front()] = std::move(result);
  }

  OnnxArray of_one(const OnnxNode& node) {
    const std::string& op = node.op;
    OnnxArray x = input(node, 0);
    if (op == "Cast") {
      return x;
    }
    if (op == "Shape") {
      OnnxArray shape{{std::ssize(x.shape)}, {x.shape.begin(), x.shape.end()}, {}};
      return shape;
    }
    if (op == "Cos") {
      return each_of(x, [](double v) { return std::cos(v); });
    }
    if (op == "Sin") {
      return each_of(x, [](double v) { return std::sin(v); });
    }
    if (op == "Sqrt") {
      return each_of(x, [](double v) { return std::sqrt(v); });
    }
    if (op == "Tanh") {
      return each_of(x, [](double v) { return std::tanh(v); });
    }
    if (op == "Sigmoid") {
      return each_of(x, [](double v) { return 1 / (1 + std::exp(-v)); });
    }
    if (op == "Transpose") {
      return transpose(x, attribute<std::vector<std::int64_t>>(node, "perm"));
    }
    check_last_axis(x, op == "ReduceMean"
                           ? attribute<std::vector<std::int64_t>>(node, "axes")
                           : std::vector<std::int64_t>{integer_attribute(node, "axis")});
    if (op == "ReduceMean") {
      return mean(x);
    }
    if (op == "Softmax") {
      return softmax(std::move(x));
    }
    throw DataError("the operator is not known");
  }

  static void check_last_axis(const OnnxArray& x, const std::vector<std::int64_t>& axes) {
    if (axes.size() != 1 || x.axis(axes.front()) + 1 != x.shape.size()) {
      throw DataError("it is known for the last axis only");
    }
  }

  OnnxArray of_several(const OnnxNode& node) {
    const std::string& op = node.op;
    const OnnxArray a = input(node, 0);
    const OnnxArray b = input(node, 1);
    if (op == "Add") {
      return each_of(a, b, std::plus<>());
    }
    if (op == "Sub") {
      return each_of(a, b, std::minus<>());
    }
    if (op == "Mul") {
      return each_of(a, b, std::multiplies<>());
    }
    if (op == "Div") {
      return each_of(a, b, std::divides<>());
    }
    if (op == "LessOrEqual") {
      return each_of(a, b, [](double x, double y) { return x <= y ? 1.0 : 0.0; });
    }
    if (op == "MatMul") {
      return product(a, b, threads_);
    }
    if (op == "Gather") {
      return gather(a, b);
    }
    if (op == "Reshape") {
      return reshape(a, b);
    }
    if (op == "Unsqueeze") {
      return unsqueezed(a, integers_of(b));
    }
    if (op == "Concat") {
      check_last_axis(a, {integer_attribute(node, "axis")});
      return concatenated(a, b);
    }
    return of_three(node, a, b);
  }

  OnnxArray of_three(const OnnxNode& node, const OnnxArray& a, const OnnxArray& b) {
    const OnnxArray c = input(node, 2);
    if (node.op == "Where") {
      return where(a, b, c);
    }
    if (node.op == "LayerNormalization") {
      check_last_axis(a, {integer_attribute(node, "axis")});
      return layer_norm(a, b, c, static_cast<double>(attribute<float>(node, "epsilon")));
    }
    if (node.op == "Range" && a.size() == 1 && b.size() == 1 && c.size() == 1 && c.at(0) == 1) {
      OnnxArray y = zeros({std::max<std::int64_t>(0, std::llround(b.at(0) - a.at(0)))});
      std::iota(y.values.begin(), y.values.end(), a.at(0));
      return y;
    }
    throw DataError("the operator is not known");
  }

  const OnnxModel& model_;
  const ReadOnnxTensor& read_;
  int threads_;
  std::map<std::string, const OnnxTensor*> tensors_;
  std::map<std::string, std::size_t> last_use_;
  std::map<std::string, OnnxArray> values_;
};

}  // namespace

std::vector<double> run_onnx(const OnnxModel& model, const ReadOnnxTensor& read,
                             std::span<const std::int32_t> ids, int threads) {
  return Interpreter(model, read, threads).run(ids);
}

}  // namespace trireme
