#include "src/train/run/data_sources.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include <fmt/ranges.h>

#include "src/base/error.h"
#include "src/base/units.h"
#include "src/train/run/run_limits.h"

namespace trireme {
namespace {

constexpr const char* kTrainKey = "data.train";
constexpr const char* kValidationKey = "data.validation";
constexpr std::size_t kMostSources = 256;
constexpr std::size_t kMostNameBytes = 64;
// Weights are multiples of 1e-9 up to 1e6, so that the sum of all stays far below 2^62.
constexpr double kWeightsPerUnit = 1e9;
constexpr double kMostWeight = 1e6;
constexpr std::int64_t kMostEpochs = 1'000'000;
constexpr std::int64_t kMostWeightOfSize = std::int64_t{1} << 53;

template <class T>
std::optional<T> number_in(std::string_view text) {
  T number{};
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  return code == std::errc() && end == text.data() + text.size() ? std::optional(number)
                                                                 : std::nullopt;
}

// Returns the folder's name. `trireme data pack` makes the folders X/train and X/validation, whose
// sources are called X.
std::string default_name(const std::filesystem::path& path) {
  std::filesystem::path folder = path.lexically_normal();
  folder = folder.has_filename() ? folder : folder.parent_path();
  const std::string name = folder.filename().string();
  const std::string parent = folder.parent_path().filename().string();
  return (name == "train" || name == "validation") && !parent.empty() ? parent : name;
}

// Returns the one path of a folder that a configuration may write in several ways, also through a
// link or as an absolute path. A folder that is not there needs no other name than its own.
std::filesystem::path resolved(const std::filesystem::path& path) {
  std::error_code code;
  const std::filesystem::path absolute = std::filesystem::absolute(path, code);
  const std::filesystem::path real = std::filesystem::weakly_canonical(absolute, code);
  const std::filesystem::path found = code ? path.lexically_normal() : real;
  return found.has_filename() ? found : found.parent_path();
}

bool is_name(const std::string& name) {
  // In statements of provenance, KEY.provenance stands for the provenance of the dataset KEY.
  return !name.empty() && name.size() <= kMostNameBytes && !name.ends_with("provenance") &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.';
         });
}

// ItemReader reads the entries of one item.
class ItemReader {
 public:
  ItemReader(ConfigBinder& binder, std::string key, std::size_t number)
      : binder_(binder), key_(std::move(key)), number_(number) {}

  void refuse(const std::string& what) {
    binder_.refuse(key_, fmt::format("entry {}: {}", number_ + 1, what));
  }

  // Returns the text of an entry, or "" after refusing one that is no text.
  std::string text(const ConfigEntry& entry) {
    if (entry.value.kind == ConfigValue::Kind::scalar && !entry.value.items[0].empty()) {
      return entry.value.items[0];
    }
    refuse(fmt::format("{} is {}, but it takes a value", entry.key, entry.value.to_yaml()));
    return "";
  }

  // Returns 0 after refusing a value that is no weight. Zero is allowed if `may_be_zero`.
  double weight(const ConfigEntry& entry, bool may_be_zero) {
    const std::string given = text(entry);
    const auto number = number_in<double>(given);
    const double least = may_be_zero ? 0 : 1 / kWeightsPerUnit;
    if (!number || !(*number >= least && *number <= kMostWeight) ||
        (*number > 0 && *number < 1 / kWeightsPerUnit)) {
      refuse(fmt::format("{} is {}, but a weight is a number above 0{}, from {} to {}", entry.key,
                         given, may_be_zero ? ", or 0 for some of the steps" : "",
                         1 / kWeightsPerUnit, kMostWeight));
      return 0;
    }
    return *number;
  }

  std::int64_t integer(const ConfigEntry& entry, std::int64_t least, std::int64_t most) {
    const std::string given = text(entry);
    const auto number = number_in<std::int64_t>(given);
    if (!number || *number < least || *number > most) {
      refuse(fmt::format("{} is {}, but it takes an integer from {} to {}", entry.key, given, least,
                         most));
      return least;
    }
    return *number;
  }

  // Adds the weight of an entry "weight.STEP".
  void add_step(const ConfigEntry& entry, std::vector<WeightStep>& weights) {
    const auto step = number_in<std::int64_t>(std::string_view(entry.key).substr(7));
    if (!step || *step < 0 || *step > kMostSteps) {
      refuse(fmt::format("{}: the weight changes at a step, as in weight: {{0: 1, 1000: 3}}",
                         entry.key));
      return;
    }
    weights.push_back({*step, weight(entry, true)});
  }

 private:
  ConfigBinder& binder_;
  std::string key_;
  std::size_t number_;
};

// Checks and sorts the weights that change.
void check_steps(ItemReader& reader, std::vector<WeightStep>& weights) {
  std::ranges::sort(weights, {}, &WeightStep::step);
  if (weights.front().step != 0) {
    reader.refuse("weight has no value for step 0, with which the run begins");
  }
  if (std::ranges::adjacent_find(weights, {}, &WeightStep::step) != weights.end()) {
    reader.refuse("weight has two values for one step");
  }
  if (std::none_of(weights.begin(), weights.end(),
                   [](const WeightStep& each) { return each.weight > 0; })) {
    reader.refuse("weight is 0 in all steps: remove the source");
  }
}

DataSource read_source(ItemReader& reader, const std::vector<ConfigEntry>& entries) {
  DataSource source;
  for (const ConfigEntry& entry : entries) {
    if (entry.key == "path") {
      source.path = reader.text(entry);
    } else if (entry.key == "name") {
      source.name = reader.text(entry);
    } else if (entry.key == "weight") {
      source.weights.push_back({0, reader.weight(entry, false)});
    } else if (entry.key.starts_with("weight.")) {
      reader.add_step(entry, source.weights);
    } else if (entry.key == "epochs") {
      source.epochs = reader.integer(entry, 1, kMostEpochs);
    } else {
      reader.refuse(
          fmt::format("unknown key {}; a source has path, name, weight and epochs", entry.key));
    }
  }
  if (!source.weights.empty()) {
    check_steps(reader, source.weights);
  }
  return source;
}

EvaluationSet read_set(ItemReader& reader, const std::vector<ConfigEntry>& entries) {
  EvaluationSet set;
  for (const ConfigEntry& entry : entries) {
    if (entry.key == "path") {
      set.path = reader.text(entry);
    } else if (entry.key == "name") {
      set.name = reader.text(entry);
    } else {
      reader.refuse(fmt::format("unknown key {}; a validation set has path and name", entry.key));
    }
  }
  return set;
}

// Reads all items, gives names to those without, and refuses what several have in common.
template <class Item, class Read>
std::vector<Item> read_all(ConfigBinder& binder, const char* key, const Mappings& items,
                           const Read& read) {
  std::vector<Item> all;
  std::set<std::string> names;
  std::map<std::filesystem::path, std::string> paths;  // as given, by what they resolve to
  if (items.size() > kMostSources) {
    binder.refuse(
        key, fmt::format("{} datasets are listed, and {} are allowed", items.size(), kMostSources));
    return all;
  }
  for (const std::vector<ConfigEntry>& entries : items) {
    ItemReader reader(binder, key, all.size());
    Item item = read(reader, entries);
    if (item.path.empty()) {
      reader.refuse("path is missing: name the folder of a dataset");
    }
    item.name = item.name.empty() ? default_name(item.path) : item.name;
    if (items.size() > 1 && !item.path.empty()) {
      if (!is_name(item.name)) {
        reader.refuse(
            fmt::format("the name '{}' is not allowed: set name to one of letters, "
                        "digits, '_', '-' and '.', with at most {} characters, that "
                        "does not end in 'provenance'",
                        item.name, kMostNameBytes));
      } else if (!names.insert(item.name).second) {
        reader.refuse(fmt::format("the name {} occurs twice: set name to another", item.name));
      }
      const std::string given = item.path.string();
      const auto [first, is_new] = paths.emplace(resolved(item.path), given);
      if (!is_new) {
        reader.refuse(first->second == given
                          ? fmt::format("{} occurs twice", given)
                          : fmt::format("{} occurs twice, first as {}", given, first->second));
      }
    }
    all.push_back(std::move(item));
  }
  return all;
}

// Returns the weight that applies at a step.
double weight_at(const DataSource& source, std::int64_t step) {
  double weight = 0;
  for (const WeightStep& each : source.weights) {
    weight = each.step <= step ? each.weight : weight;
  }
  return weight;
}

// Returns the steps at which the weight of a source changes; 0 is one.
std::set<std::int64_t> steps_of_change(const std::vector<DataSource>& sources) {
  std::set<std::int64_t> steps = {0};
  for (const DataSource& source : sources) {
    for (const WeightStep& each : source.weights) {
      steps.insert(each.step);
    }
  }
  return steps;
}

// Refuses sources of which only some have weights, and steps in which no source has any.
void check_mixture(ConfigBinder& binder, const std::vector<DataSource>& sources) {
  const auto weighted = std::count_if(sources.begin(), sources.end(),
                                      [](const DataSource& each) { return !each.weights.empty(); });
  if (weighted != 0 && weighted != std::ssize(sources)) {
    binder.refuse(kTrainKey, fmt::format("{} of {} have a weight: give one to all, or to none, to "
                                         "mix them by their sizes",
                                         weighted, counted(std::ssize(sources), "source")));
  }
  if (weighted == 0) {
    return;
  }
  for (const std::int64_t step : steps_of_change(sources)) {
    if (std::none_of(sources.begin(), sources.end(), [&](const DataSource& each) {
          return each.weights.empty() || weight_at(each, step) > 0;
        })) {
      binder.refuse(kTrainKey, fmt::format("all weights are 0 from step {} on", step));
    }
  }
}

std::string key_of(const char* key, const std::string& name, std::size_t count) {
  return count > 1 ? fmt::format("{}.{}", key, name) : std::string(key);
}

}  // namespace

std::string DataSource::key(std::size_t sources) const { return key_of(kTrainKey, name, sources); }

std::string EvaluationSet::key(std::size_t sets) const {
  return key_of(kValidationKey, name, sets);
}

std::vector<DataSource> read_data_sources(ConfigBinder& binder, const Mappings& items) {
  std::vector<DataSource> sources = read_all<DataSource>(binder, kTrainKey, items, read_source);
  check_mixture(binder, sources);
  return sources;
}

std::vector<EvaluationSet> read_evaluation_sets(ConfigBinder& binder, const Mappings& items) {
  return read_all<EvaluationSet>(binder, kValidationKey, items, read_set);
}

Mixture mixture_of(const std::vector<DataSource>& sources, const std::vector<std::int64_t>& samples,
                   const BatchSchedule& batches) {
  check(sources.size() == samples.size() && !sources.empty(), "each source has its samples");
  std::vector<MixtureWeights> phases;
  for (const std::int64_t step : steps_of_change(sources)) {
    if (!batches.has_room_for(step)) {
      break;  // no run gets there
    }
    MixtureWeights phase{batches.before(step), {}};
    for (std::size_t i = 0; i < sources.size(); ++i) {
      const DataSource& source = sources[i];
      if (!source.weights.empty()) {
        phase.weights.push_back(std::llround(weight_at(source, step) * kWeightsPerUnit));
        continue;
      }
      std::int64_t weight = 0;
      if (__builtin_mul_overflow(samples[i], std::max<std::int64_t>(source.epochs, 1), &weight) ||
          weight > kMostWeightOfSize) {
        throw ConfigError(fmt::format(
            "{}: {} epochs of {} are too many to mix by size: lower epochs, or give weights",
            source.key(sources.size()), source.epochs, counted(samples[i], "sample")));
      }
      phase.weights.push_back(weight);
    }
    phases.push_back(std::move(phase));
  }
  return Mixture(phases);
}

void check_epochs(const std::vector<DataSource>& sources, const std::vector<std::int64_t>& samples,
                  const Mixture& mixture, std::int64_t end_sample) {
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const std::int64_t taken = mixture.count(i, end_sample);
    const std::int64_t epochs = sources[i].epochs;
    if (epochs > 0 && (taken - 1) / samples[i] >= epochs && taken > 0) {
      throw ConfigError(fmt::format(
          "{}: the run takes {} of {}, which has {}: that is {:.2f} epochs, and `epochs` allows "
          "{}. Lower its weight or train.steps, raise epochs, or pack more data",
          sources[i].key(sources.size()), counted(taken, "sample"), sources[i].path.string(),
          samples[i], static_cast<double>(taken) / static_cast<double>(samples[i]), epochs));
    }
  }
}

std::string mixture_text(const std::vector<DataSource>& sources) {
  std::vector<std::string> parts;
  for (const DataSource& source : sources) {
    std::string weights;
    for (const WeightStep& each : source.weights) {
      weights += source.weights.size() == 1 ? fmt::format(" {}", each.weight)
                                            : fmt::format(" {}:{}", each.step, each.weight);
    }
    if (source.weights.empty()) {
      weights = fmt::format(" by size x {}", std::max<std::int64_t>(source.epochs, 1));
    }
    parts.push_back(source.name + weights);
  }
  return parts.size() < 2 ? "" : fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace trireme
