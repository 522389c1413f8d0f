#include "benchmarks/all/picture.h"

#include <map>

#include <fmt/format.h>

#include "benchmarks/figures.h"
#include "src/base/units.h"

namespace trireme {
namespace {

using Json = nlohmann::ordered_json;

// Headline is the metric of a result that the table shows, and the parameters that tell it apart.
struct Headline {
  std::vector<std::string> metrics;
  std::vector<std::string> params;
};

const Headline* headline_of(const std::string& name) {
  static const std::map<std::string, Headline> all = {
      {"gemm", {{"flops_per_s"}, {"precision", "m"}}},
      {"mem_stream", {{"bytes_per_s"}, {"kernel", "stores", "numa_node", "host"}}},
      {"mem_latency", {{"latency_ns"}, {"from_numa_node", "to_numa_node", "host"}}},
      {"noise", {{"lost_fraction"}, {"method", "host"}}},
      {"coll", {{"busbw_GBps"}, {"op", "bytes"}}},
      {"p2p_latency", {{"median_us"}, {"bytes"}}},
      {"p2p_bw", {{"median_GBps"}, {"bytes"}}},
      {"pairs", {{"median_GBps"}, {"by"}}},
      {"io_write", {{"bytes_per_s"}, {"access"}}},
      {"io_read", {{"bytes_per_s"}, {"access"}}},
      {"io_metadata", {{"operations_per_s"}, {"operation"}}},
      {"loader_emulation", {{"accelerator_utilization", "bytes_per_s"}, {"workload"}}},
      {"ckpt_model_write", {{"bytes_per_s"}, {"model"}}},
      {"ckpt_model_read", {{"bytes_per_s"}, {"model"}}},
      {"step", {{"tokens_per_s", "fraction_of_ceiling"}, {"model", "precision"}}}};
  const auto found = all.find(name);
  return found == all.end() ? nullptr : &found->second;
}

// Latencies only of the smallest message, bandwidths only of the largest.
bool is_shown(const Json& result, const Json& results) {
  const std::string name = result.at("name");
  if (name != "p2p_latency" && name != "p2p_bw") {
    return true;
  }
  for (const Json& other : results) {
    if (other.at("name") == name) {
      const auto own_bytes = result.at("params").at("bytes").get<std::int64_t>();
      const auto bytes = other.at("params").at("bytes").get<std::int64_t>();
      if (name == "p2p_latency" ? bytes < own_bytes : bytes > own_bytes) {
        return false;
      }
    }
  }
  return true;
}

std::string what_text(const Json& result, const Headline& headline) {
  static const std::map<std::string, std::string> words = {{"numa_node", "NUMA node "},
                                                           {"from_numa_node", "from NUMA node "},
                                                           {"to_numa_node", "to "},
                                                           {"by", "by "}};
  std::string text = result.at("name");
  for (const std::string& key : headline.params) {
    const Json value = result.at("params").value(key, Json(nullptr));
    if (value.is_null()) {
      continue;
    }
    const auto word = words.find(key);
    text += " " + (word == words.end() ? "" : word->second) +
            (key == "bytes"      ? format_bytes(value.get<std::int64_t>())
             : value.is_string() ? value.get<std::string>()
                                 : value.dump());
  }
  return text;
}

// Returns what figure_text() does not say of a metric, as " per s"; may be empty.
std::string what_it_counts(const std::string& metric) {
  return metric == "lost_fraction"             ? " of the time lost"
         : metric == "accelerator_utilization" ? " of the time computing"
         : metric == "operations_per_s"        ? " per s"
         : metric == "fraction_of_ceiling"     ? " of the products' rate"
                                               : "";
}

std::string lines_of(const Answer& answer) {
  std::string text;
  for (const Json& result : answer.results) {
    const Headline* const headline = headline_of(result.at("name"));
    if (headline == nullptr || !is_shown(result, answer.results)) {
      continue;
    }
    std::string values;
    for (const std::string& metric : headline->metrics) {
      const Json value = result.at("metrics").value(metric, Json(nullptr));
      const std::string shown =
          value.is_number() ? figure_text(metric, value.get<double>()) + what_it_counts(metric)
                            : std::string("-");
      values += (values.empty() ? "" : ", ") + shown;
    }
    text += fmt::format("{:<46} {}{}\n", what_text(result, *headline), values,
                        result.contains("unfinished") ? ", unfinished" : "");
  }
  return text;
}

}  // namespace

Answer failed_answer(const std::string& question, double seconds, const std::string& why,
                     std::exception_ptr error) {
  return {question, seconds, Json::array(), why, true, std::move(error), {}};
}

std::vector<Answer> with_unanswered(std::vector<Answer> answers,
                                    const std::vector<std::string>& questions,
                                    const std::string& why, double seconds, Json rows) {
  for (Json& row : rows) {
    row["unfinished"] = true;
  }
  const std::size_t next = answers.size();
  for (std::size_t i = next; i < questions.size(); ++i) {
    answers.push_back(i == next ? failed_answer(questions[i], seconds, why, nullptr)
                                : Answer{questions[i], 0, Json::array(),
                                         fmt::format("left out: {} {}", questions[next], why)});
  }
  if (next < answers.size()) {
    answers[next].results = std::move(rows);
  }
  return answers;
}

std::string wrong_question(const std::vector<Answer>& answers) {
  for (const Answer& answer : answers) {
    for (const Json& row : answer.results) {
      const Json wrong = row.at("metrics").value("wrong", Json(0));
      if (row.contains("unfinished") && wrong.is_number() && wrong != 0) {
        return answer.question;
      }
    }
  }
  return "";
}

std::string picture_text(const std::vector<Answer>& answers) {
  std::string text = fmt::format("{:<46} {}\n", "# what", "median");
  for (const Answer& answer : answers) {
    text += lines_of(answer);
    if (!answer.trouble.empty()) {
      text += fmt::format("# {}: {}{}\n", answer.question, answer.has_failed ? "failed: " : "",
                          answer.trouble);
    }
    if (!answer.left_out.empty()) {
      text += fmt::format("# {}: left out for lack of time or memory: {}\n", answer.question,
                          fmt::join(answer.left_out, "; "));
    }
  }
  return text;
}

}  // namespace trireme
