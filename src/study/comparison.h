// Decides whether one measurement is slower than another. Pure functions.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "src/study/measured_result.h"
#include "src/study/rank_test.h"

namespace trireme {

enum class ChangeVerdict { regression, improvement, unchanged, undecided, not_judged };
std::string_view name_of(ChangeVerdict verdict);

struct ComparisonRules {
  double threshold = 0.02;  // smaller changes than this fraction never count
  double alpha = 0.01;      // the probability that a comparison raises any false alarm
};

// Compares the samples of one row.
struct RowComparison {
  const ResultRow* row = nullptr;  // in the first measurement
  std::string samples;             // their name
  Better better = Better::unknown;
  bool reference = false;
  double median_a = 0;  // NaN without samples
  double median_b = 0;
  std::size_t count_a = 0;  // samples, after the merging of those that depend on each other
  std::size_t count_b = 0;
  // Typical change from A to B as a fraction of A (Hodges and Lehmann's estimate over the ratios of
  // all pairs of samples), and the interval that has the confidence 1 - alpha. The bounds are
  // infinite if there are too few samples; all are NaN if samples are zero or negative.
  Shift change;
  RankTest test;
  double p_adjusted = 1;  // by Holm's method, over all judged rows
  // Probability that a sample of B is worse than one of A, plus half of that of a draw.
  double worse_probability = 0.5;
  ChangeVerdict verdict = ChangeVerdict::not_judged;
  std::string why;  // if it was not judged or is undecided
};

struct Comparison {
  std::vector<RowComparison> rows;
  std::vector<std::string> only_a, only_b;  // titles of rows and samples that the other lacks
  std::size_t count_of(ChangeVerdict verdict) const;
};

// Both results outlive the comparison.
Comparison compare_results(const MeasuredResult& a, const MeasuredResult& b,
                           const ComparisonRules& rules);

// Returns why the two results cannot be compared, one sentence each: another machine, benchmark,
// environment or configuration. Empty if they can.
std::vector<std::string> differences(const MeasuredResult& a, const MeasuredResult& b);

// Titles of the rows of one result, without the parameters that have one value in all its rows of a
// name.
class RowTitles {
 public:
  explicit RowTitles(const MeasuredResult& of);
  // Returns "gemm precision=bf16 m=96".
  std::string operator()(const ResultRow& row) const;
  // Returns what the titles of the rows of this name leave out: "k=96 n=96".
  std::string shared_by(const std::string& name) const;

 private:
  std::map<std::string, std::map<std::pair<std::string, std::string>, std::int64_t>> shared_;
};

// Returns the parameters of a row as text, such as "precision=bf16 m=96", without those that have
// one value in all rows of the result.
std::string row_title(const ResultRow& row, const MeasuredResult& of);

}  // namespace trireme
