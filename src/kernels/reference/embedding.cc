#include "src/kernels/ids.h"
#include "src/kernels/reference/reference.h"

namespace trireme::reference {

void embedding_forward(Stream&, const EmbeddingForward& p) {
  const std::int64_t held = p.token.count / p.channels;
  if (!p.partial) {
    check_ids(p.ids, p.batch * p.time, held);
  }
  for (std::int64_t row = 0; row < p.batch * p.time; ++row) {
    const std::int64_t id = as<std::int32_t>(p.ids)[row] - p.first_id;
    const std::int64_t position = p.first_position + row % p.time;
    const bool here = id >= 0 && id < held;
    for (std::int64_t c = 0; c < p.channels; ++c) {
      const double shift = p.position.empty() ? 0 : at(p.position, position * p.channels + c);
      put(p.out, row * p.channels + c, here ? at(p.token, id * p.channels + c) + shift : 0);
    }
  }
}

void embedding_backward(Stream&, const EmbeddingBackward& p) {
  const std::int64_t held = p.dtoken.count / p.channels;
  if (!p.partial && !p.dtoken.empty()) {
    check_ids(p.ids, p.batch * p.time, held);
  }
  for (std::int64_t row = 0; row < p.batch * p.time; ++row) {
    const std::int64_t id = as<std::int32_t>(p.ids)[row] - p.first_id;
    for (std::int64_t c = 0; id >= 0 && id < held && c < p.channels; ++c) {
      const std::int64_t i = id * p.channels + c;
      put(p.dtoken, i, at(p.dtoken, i) + at(p.dout, row * p.channels + c));
    }
  }
  for (std::int64_t i = 0; !p.dposition.empty() && i < p.dposition.count; ++i) {
    const std::int64_t time = i / p.channels;
    double sum = 0;
    for (std::int64_t b = 0; time < p.time && b < p.batch; ++b) {
      sum += at(p.dout, (b * p.time + time) * p.channels + i % p.channels);
    }
    put(p.dposition, i, sum);
  }
}

void rope(Stream&, const Rope& p) {
  const std::int64_t half = p.head_dim / 2;
  for (std::int64_t row = 0; row < p.batch * p.time; ++row) {
    const auto position = static_cast<double>(p.first_position + row % p.time);
    for (std::int64_t pair = 0; pair < p.heads * half; ++pair) {
      const std::int64_t first = row * p.stride + pair / half * p.head_dim + pair % half;
      const double angle = position * at(p.inverse_frequency, pair % half);
      const double c = std::cos(angle);
      const double s = p.backward ? -std::sin(angle) : std::sin(angle);
      const double x1 = at(p.x, first);
      const double x2 = at(p.x, first + half);
      put(p.x, first, x1 * c - x2 * s);
      put(p.x, first + half, x2 * c + x1 * s);
    }
  }
}

}  // namespace trireme::reference
