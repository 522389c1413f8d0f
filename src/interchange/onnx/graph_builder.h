// GraphBuilder collects the nodes, constants and weights of an ONNX graph, and gives each weight
// its place in the data file. Names are those of values: a constant that is asked for again under
// the same name is there once.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "src/interchange/onnx/onnx_graph.h"

namespace trireme {

class GraphBuilder {
 public:
  // type: of matrices in the data file.
  GraphBuilder(OnnxType type, std::string data_file)
      : type_(type), data_file_(std::move(data_file)) {}

  // Adds a node with one output, and returns its name.
  std::string node(const std::string& op, std::vector<std::string> inputs,
                   const std::string& output, std::vector<OnnxAttribute> attributes = {});
  void nodes(const std::string& op, std::vector<std::string> inputs,
             std::vector<std::string> outputs, std::vector<OnnxAttribute> attributes);
  static OnnxAttribute to(OnnxType type) { return {"to", static_cast<std::int64_t>(type)}; }

  // Add a constant, and return its name.
  std::string integer(const std::string& name, std::int64_t value);
  std::string integers(const std::string& name, const std::vector<std::int64_t>& values);
  std::string real(const std::string& name, float value);
  std::string reals(const std::string& name, std::vector<std::int64_t> shape,
                    const std::vector<float>& values);

  // Add a weight of the model, and return its name. Vectors are always f32.
  std::string vector(const std::string& source, std::int64_t size);
  std::string stored(const std::string& source, std::vector<std::int64_t> shape);
  // The shape is that in the model, [out,in].
  std::string transposed(const std::string& source, const std::vector<std::int64_t>& shape);
  // Returns a matrix, or what was made of one, in fp32.
  std::string widened(const std::string& value);

  OnnxGraph take() { return std::move(graph_); }

 private:
  void constant(const std::string& name, OnnxType type, std::vector<std::int64_t> shape,
                const void* data);
  std::string weight(const std::string& source, OnnxType type, std::vector<std::int64_t> shape,
                     bool is_transposed);

  OnnxType type_;
  std::string data_file_;
  OnnxGraph graph_;
  std::set<std::string> names_;  // of constants
};

}  // namespace trireme
