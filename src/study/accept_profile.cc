#include "src/study/accept_profile.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

#include "src/base/config_binder.h"

namespace trireme {
namespace {

// Parses "products fp32=900".
void parse_limits(ConfigBinder& b, const std::string& key, const std::vector<std::string>& texts,
                  std::map<std::string, double>& limits) {
  for (const std::string& text : texts) {
    const std::size_t equals = text.rfind('=');
    const std::string number = equals == std::string::npos ? "" : text.substr(equals + 1);
    char* end = nullptr;
    const double value = std::strtod(number.c_str(), &end);
    if (number.empty() || *end != '\0' || !std::isfinite(value) || value <= 0 || equals == 0) {
      b.refuse(key, fmt::format("'{}' is not NAME=VALUE with a value above 0", text));
    } else if (const auto [other, is_new] = limits.emplace(text.substr(0, equals), value);
               !is_new && other->second != value) {
      b.refuse(key, fmt::format("'{}' has two limits, {:g} and {:g}: keep one", other->first,
                                other->second, value));
    }
  }
}

// Returns the first {name} in a word that is none of the known ones, or "". "${name}" is a
// variable, for a shell.
std::string unknown_mark(const std::string& word, const std::vector<std::string>& known) {
  for (std::size_t at = word.find('{'); at != std::string::npos; at = word.find('{', at + 1)) {
    const std::size_t end = word.find_first_not_of("abcdefghijklmnopqrstuvwxyz_", at + 1);
    const bool closed = end != std::string::npos && word[end] == '}' && end > at + 1;
    const std::string mark = closed ? word.substr(at, end + 1 - at) : "";
    if (closed && (at == 0 || word[at - 1] != '$') &&
        std::find(known.begin(), known.end(), mark) == known.end()) {
      return mark;
    }
  }
  return "";
}

void check_marks(ConfigBinder& b, const std::string& section, const std::vector<std::string>& start,
                 const std::vector<std::string>& measures) {
  const std::vector<std::string> known = section == "node" ? std::vector<std::string>{"{node}"}
                                                           : std::vector<std::string>{"{a}", "{b}"};
  for (const std::string& mark : measures.empty() ? std::vector<std::string>() : known) {
    const bool is_named = std::any_of(start.begin(), start.end(), [&](const std::string& word) {
      return word.find(mark) != std::string::npos;
    });
    if (!is_named) {
      b.refuse(section + ".start",
               fmt::format("no word has {}, so that the program would not start on the node that "
                           "is measured",
                           mark));
    }
  }
  for (const std::string& word : start) {
    if (const std::string mark = unknown_mark(word, known); !mark.empty()) {
      b.refuse(section + ".start",
               fmt::format("'{}' in '{}' stands for nothing: the names of nodes are {}", mark, word,
                           fmt::join(known, " and ")));
    }
  }
  for (const std::string& measure : measures) {
    if (const std::string mark = unknown_mark(measure, {}); !mark.empty()) {
      b.refuse(section + ".measures",
               fmt::format("'{}' in '{}' stands for nothing: only words of {}.start are replaced",
                           mark, measure, section));
    }
  }
}

void bind(ConfigBinder& b, const std::string& section, AcceptProfile::Demands& c) {
  std::vector<std::string> limits;
  b.texts(section + ".start", c.start, "words of the command that starts a program there");
  b.texts(section + ".measures", c.measures, "what is measured: health, or arguments of bench");
  b.real(section + ".at_least", c.at_least, "percent of the median that must be reached")
      .at_least(1)
      .at_most(100);
  b.real(section + ".score", c.score, "robust standard deviations that are tolerated").at_least(0);
  b.texts(section + ".limits", limits, "absolute limits, as NAME=VALUE");
  parse_limits(b, section + ".limits", limits, c.limits);
  if (c.measures.empty() && section == "node") {
    b.refuse("node.measures", "nothing would be measured, so nothing could be accepted");
  }
  if (c.measures.empty() && !c.limits.empty()) {
    b.refuse(section + ".limits",
             fmt::format("they concern nothing: {}.measures is empty", section));
  }
  check_marks(b, section, c.start, c.measures);
  for (const std::string& measure : c.measures) {
    if (const std::size_t at = measure.find_first_not_of(" \t\n");
        at == std::string::npos || measure[at] == '-') {
      b.refuse(section + ".measures", fmt::format("'{}' names no benchmark", measure));
    }
  }
}

}  // namespace

AcceptProfile load_accept_profile(const std::filesystem::path& file) {
  AcceptProfile profile;
  profile.node.start = {"srun", "--nodes=1", "--ntasks=1", "--nodelist={node}"};
  profile.node.measures = {"health"};
  profile.node.at_least = 90;
  profile.link.start = {"srun",       "--mpi=pmix",          "--nodes=2",
                        "--ntasks=2", "--ntasks-per-node=1", "--nodelist={a},{b}"};
  profile.link.measures = {"p2p --test bandwidth -m 4M:4M"};
  profile.link.at_least = 80;
  ConfigBinder b;
  b.add_file(file);
  b.text("nodes", profile.nodes, "host list; empty: the nodes of the Slurm job");
  b.text("program", profile.program, "path of the program on the nodes; empty: this one's");
  b.integer("rounds", profile.rounds, "measurements of each node").at_least(1).at_most(1000);
  b.integer("link_rounds", profile.link_rounds,
            "rounds of pairs of nodes; 0: all pairs of up to 32 nodes, and few of more")
      .at_least(0)
      .at_most(100'000);
  b.real("burn_in_minutes", profile.burn_in_minutes, "how long rounds are repeated").at_least(0);
  b.integer("at_once", profile.at_once,
            "nodes or pairs measured at the same time; 0: all, up to 256")
      .at_least(0);
  b.real("seconds", profile.seconds, "limit for one measurement, at most a year")
      .at_least(1)
      .at_most(31'536'000);
  b.real("drain_at_most", profile.drain_at_most,
         "percent of the nodes up to which --drain drains them")
      .at_least(0)
      .at_most(100);
  bind(b, "node", profile.node);
  bind(b, "link", profile.link);
  b.finish();
  return profile;
}

std::vector<std::string> filled_in(std::vector<std::string> words,
                                   const std::map<std::string, std::string>& names) {
  for (std::string& word : words) {
    for (const auto& [name, value] : names) {
      const std::string mark = "{" + name + "}";
      for (std::size_t at = word.find(mark); at != std::string::npos;
           at = word.find(mark, at + value.size())) {
        word.replace(at, mark.size(), value);
      }
    }
  }
  return words;
}

}  // namespace trireme
