// PairMatrix: what was measured between all pairs of a group, which pairs are too slow, and whom
// they have in common. Values; pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace trireme {

struct PairMatrix {
  explicit PairMatrix(int n)
      : size(n), values(static_cast<std::size_t>(n) * static_cast<std::size_t>(n)) {}
  double& at(int from, int to) { return values[index(from, to)]; }
  double at(int from, int to) const { return values[index(from, to)]; }
  // All but the diagonal, row by row.
  std::vector<double> off_diagonal() const;

  int size;
  std::vector<double> values;  // [size, size]; the diagonal means nothing

 private:
  std::size_t index(int from, int to) const {
    return static_cast<std::size_t>(from) * static_cast<std::size_t>(size) +
           static_cast<std::size_t>(to);
  }
};

struct SlowPair {
  int from = 0;
  int to = 0;
  double value = 0;
  double score = 0;  // robust, see statistics.h
};

// The directions whose robust score is below kOutlierScore, slowest first.
std::vector<SlowPair> outliers(const PairMatrix& bandwidth);
// The directions below `least`, slowest first.
std::vector<SlowPair> below(const PairMatrix& bandwidth, double least);
// The one member that all of at least two different pairs share: the likely culprit.
std::optional<int> common_member(const std::vector<SlowPair>& pairs);

// --threshold: "0.8", a part of the median, or "2.5GB/s".
struct PairThreshold {
  double value = 0;
  bool absolute = false;  // in bytes a second then
  double least(double median) const { return absolute ? value : value * median; }
};
// ConfigError for anything else.
PairThreshold parse_threshold(const std::string& text);

// A first line "from,host,0,1,..." and a line for each member: its number, its host, a value for
// each other and nothing for itself. Numbers are ranks.
std::string matrix_csv(const PairMatrix& matrix, const std::vector<int>& ranks,
                       const std::vector<std::string>& hosts);

}  // namespace trireme
