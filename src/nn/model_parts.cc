#include "src/nn/model_parts.h"

#include <cmath>

#include "src/nn/model_size.h"

namespace trireme {
namespace {

Parameter normal_matrix(const std::string& name, std::int64_t rows, std::int64_t columns,
                        double deviation) {
  Parameter parameter;
  parameter.name = name;
  parameter.shape = {rows, columns};
  parameter.initializer = {Initializer::Kind::normal, static_cast<float>(deviation)};
  parameter.decays = true;
  return parameter;
}

Parameter constant_vector(const std::string& name, std::int64_t elements, Initializer::Kind kind) {
  Parameter parameter;
  parameter.name = name;
  parameter.shape = {elements};
  parameter.initializer = {kind, 0};
  return parameter;
}

}  // namespace

ParameterId ParameterDeclarer::matrix(const std::string& name, std::int64_t rows,
                                      std::int64_t columns) {
  return store_.add(normal_matrix(name, rows, columns, config_.initializer_range));
}

ParameterId ParameterDeclarer::joined_matrix(const std::string& name, std::int64_t rows,
                                             std::int64_t columns) {
  Parameter parameter = normal_matrix(name, rows, columns, config_.initializer_range);
  parameter.joined = true;
  return store_.add(std::move(parameter));
}

ParameterId ParameterDeclarer::residual_matrix(const std::string& name, std::int64_t rows,
                                               std::int64_t columns) {
  const double branches = 2.0 * static_cast<double>(config_.layers);
  return store_.add(
      normal_matrix(name, rows, columns, config_.initializer_range / std::sqrt(branches)));
}

ParameterId ParameterDeclarer::ones(const std::string& name, std::int64_t elements) {
  return store_.add(constant_vector(name, elements, Initializer::Kind::ones));
}

ParameterId ParameterDeclarer::zeros(const std::string& name, std::int64_t elements) {
  return store_.add(constant_vector(name, elements, Initializer::Kind::zeros));
}

void finish_parts(const ModelConfig& config, ParameterDeclarer& declare, ModelParts& parts) {
  parts.embedding.tied = config.tie_embeddings;
  parts.embedding.channels = config.hidden;
  parts.embedding.dropout = static_cast<float>(config.dropout);
  parts.head.tied = config.tie_embeddings;
  parts.head.rows_at_once = logits_rows(config);
  parts.head.output.weight = config.tie_embeddings
                                 ? parts.embedding.token
                                 : declare.matrix("lm_head.weight", config.vocab, config.hidden);
  parts.head.output.in = config.hidden;
  parts.head.output.out = config.vocab;
  parts.head.output.transposed = true;
}

}  // namespace trireme
