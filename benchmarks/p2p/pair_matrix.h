// PairMatrix holds a measurement of all pairs of a group. The functions find the pairs that are too
// slow and the member that they share. Values and pure functions.
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
  // Returns all values except the diagonal, row by row.
  std::vector<double> off_diagonal() const;

  int size;
  std::vector<double> values;  // [size, size]; the diagonal has no meaning

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
  double score = 0;  // the robust score of statistics.h
};

// Returns the directions whose robust score is below kOutlierScore, slowest first.
std::vector<SlowPair> outliers(const PairMatrix& bandwidth);
// Returns the directions below `least`, slowest first.
std::vector<SlowPair> below(const PairMatrix& bandwidth, double least);
// Returns the one member that at least two different pairs all share, the likely culprit.
std::optional<int> common_member(const std::vector<SlowPair>& pairs);

// RateUnit is the unit in which all bandwidths of a table are printed.
struct RateUnit {
  const char* name;
  double bytes_per_s;
};
// Returns the largest of GB/s, MB/s and kB/s in which two decimals show the median (in bytes per
// second), that is, in which it is at least 0.1. Tables of small messages need the smaller ones.
RateUnit rate_unit(double median);

// Formats a value for a table with two decimals, or with more or an exponent if it would look like
// zero otherwise.
std::string matrix_cell(double value);

// PairThreshold is the argument of --threshold: "0.8", a fraction of the median, or "2.5GB/s".
struct PairThreshold {
  double value = 0;
  bool absolute = false;  // whether `value` is in bytes per second
  double least(double median) const { return absolute ? value : value * median; }
};
// Throws ConfigError for any other form.
PairThreshold parse_threshold(const std::string& text);

// Returns CSV with the header "from,host,0,1,..." and a line for each member: its rank, its host,
// and a value for each other member. Its own column is empty.
std::string matrix_csv(const PairMatrix& matrix, const std::vector<int>& ranks,
                       const std::vector<std::string>& hosts);

}  // namespace trireme
