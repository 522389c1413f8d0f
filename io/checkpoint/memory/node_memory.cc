#include "io/checkpoint/memory/node_memory.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <system_error>
#include <tuple>

#include "io/checkpoint/names.h"
#include "io/checkpoint/step_keys_file.h"
#include "src/base/digest.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/log.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);  // no setenv here
  return value == nullptr ? "" : value;
}

std::optional<std::int64_t> parse_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool ok = code == std::errc() && end == text.data() + text.size() && value >= 0;
  return ok ? std::optional(value) : std::nullopt;
}

// Ignores errors, since agents and ranks of an old attempt may move folders during the listing.
std::vector<fs::path> folders_in(const fs::path& folder) {
  std::error_code code;
  std::vector<fs::path> paths;
  for (fs::directory_iterator at(folder, code), end; !code && at != end; at.increment(code)) {
    std::error_code ignored;
    if (at->is_directory(ignored) && !at->path().filename().string().starts_with('.')) {
      paths.push_back(at->path());
    }
  }
  return paths;
}

std::vector<std::int64_t> shards_here(const fs::path& folder, const Manifest& manifest) {
  std::vector<std::int64_t> here;
  for (std::size_t i = 0; i < manifest.shards.size(); ++i) {
    std::error_code code;
    const auto bytes = fs::file_size(folder / manifest.shards[i].file, code);
    if (!code && static_cast<std::int64_t>(bytes) == manifest.shards[i].bytes) {
      here.push_back(static_cast<std::int64_t>(i));
    }
  }
  return here;
}

MemoryStep inspect(const fs::path& path, const MemoryStepName& name, bool is_partner) {
  MemoryStep step;
  step.path = path;
  step.is_partner = is_partner;
  step.name = name;
  const fs::path file = path / kManifestName;
  try {
    Manifest manifest = parse_manifest(read_file(file), file.string());
    if (manifest.meta.step != name.step || manifest.generation != name.generation) {
      throw DataError(fmt::format("{} belongs to step {}, generation {}: the folder was renamed",
                                  file.string(), manifest.meta.step, manifest.generation));
    }
    if (!manifest.data_key.empty()) {
      (void)read_step_keys(path, manifest);
    }
    step.shards = shards_here(path, manifest);
    step.manifest = std::move(manifest);
  } catch (const NotFound& e) {
    step.problem = e.what();
  } catch (const Error& e) {
    step.problem = e.what();
    step.is_damaged = true;
  }
  return step;
}

void add_steps(const fs::path& folder, bool is_partner, std::vector<MemoryStep>& steps) {
  for (const fs::path& path : folders_in(folder)) {
    if (const auto name = parse_memory_step_name(path.filename().string())) {
      steps.push_back(inspect(path, *name, is_partner));
    }
  }
}

}  // namespace

NodeMemory NodeMemory::from_environment() {
  const std::string name = environment("TRIREME_NODE");
  if (name.find('/') != std::string::npos || name == "." || name == "..") {
    throw ConfigError(fmt::format(
        "TRIREME_NODE is '{}', which cannot name a folder: use the node's name, without slashes",
        name));
  }
  return {environment("TRIREME_NODE_DIR"), name.empty() ? host_name() : name};
}

std::string MemoryStepName::to_string() const {
  return fmt::format("step-{:08}-g{:06}", step, generation);
}

std::optional<MemoryStepName> parse_memory_step_name(std::string_view name) {
  const std::size_t split = name.rfind("-g");
  if (!name.starts_with("step-") || split == std::string_view::npos || split < 5) {
    return std::nullopt;
  }
  const auto step = parse_number(name.substr(5, split - 5));
  const auto generation = parse_number(name.substr(split + 2));
  if (!step || !generation) {
    return std::nullopt;
  }
  const MemoryStepName parsed{*step, *generation};
  return parsed.to_string() == name ? std::optional(parsed) : std::nullopt;
}

std::vector<MemoryStep> list_memory_steps(const NodeMemory& node) {
  std::vector<MemoryStep> steps;
  if (!node.folder.empty()) {
    add_steps(node.own(), false, steps);
    for (const fs::path& of_node : folders_in(node.partner())) {
      add_steps(of_node, true, steps);
    }
  }
  const auto key = [](const MemoryStep& step) {
    return std::tuple(-step.name.generation, -step.name.step, step.is_partner, step.path);
  };
  std::sort(steps.begin(), steps.end(),
            [&](const MemoryStep& a, const MemoryStep& b) { return key(a) < key(b); });
  return steps;
}

std::int64_t held_bytes(const NodeMemory& node) {
  std::int64_t bytes = 0;
  if (node.folder.empty()) {
    return bytes;
  }
  std::error_code code;
  for (const fs::path& top : {node.own(), node.partner()}) {
    // Ignores errors: these are mostly steps of earlier attempts, which only the agent still moves,
    // and a file that it moves during the count makes no difference.
    for (fs::recursive_directory_iterator at(top, code), end; !code && at != end;
         at.increment(code)) {
      std::error_code gone;
      const bool is_file = at->is_regular_file(gone) && !at->is_symlink(gone);
      const auto size = is_file ? at->file_size(gone) : 0;
      bytes += gone ? 0 : static_cast<std::int64_t>(size);
    }
  }
  return bytes;
}

std::string contents_id(const Manifest& manifest) {
  std::string text;
  for (const StoredShard& shard : manifest.shards) {
    text += fmt::format("{} {} {}\n", shard.file, shard.bytes, hex64(shard.digest));
  }
  return hex64(xxh3(text.data(), static_cast<std::int64_t>(text.size())));
}

}  // namespace trireme
