#include <algorithm>
#include <array>
#include <filesystem>
#include <span>
#include <string_view>
#include <utility>

#include "src/app/command/audit_trail.h"
#include "src/base/digest.h"
#include "src/base/error.h"
#include "src/keys/key_uri.h"

namespace trireme {
namespace {

// The options of `generate` whose values are recorded. All other words may be a prompt, or one that
// was mistyped.
constexpr std::array<std::string_view, 11> kShownOptions = {
    "--checkpoint",  "--precision", "--device", "--prompts", "--samples", "--tokens",
    "--temperature", "--top-k",     "--top-p",  "--seed",    "--threads"};

// Options whose values name keys, without dashes, and besides them every option with "key" in its
// name.
constexpr std::array<std::string_view, 5> kKeyOptions = {"to", "from", "k", "pkcs11", "sign"};

constexpr std::string_view kKeysAssignment = "encryption.keys=";

bool is_among(std::span<const std::string_view> options, std::string_view option) {
  return std::find(options.begin(), options.end(), option) != options.end();
}

// Returns whether the word, up to its "=", is an option whose value names a key, also where its
// name is mistyped as in -key or --keys.
bool is_key_option(std::string_view word) {
  if (!word.starts_with('-')) {
    return false;
  }
  word = word.substr(0, word.find('='));
  word.remove_prefix(std::min(word.find_first_not_of('-'), word.size()));
  return is_among(kKeyOptions, word) || word.find("key") != std::string_view::npos;
}

// Returns whether the value of such an option names a key without being one.
bool names_key(const std::string& value) {
  try {
    check_key_uri(value);
    return true;
  } catch (const ConfigError&) {
    std::error_code unknown;
    return value.empty() || std::filesystem::exists(value, unknown);
  }
}

// Returns whether each element of a list in the form of YAML names a key.
bool name_keys(std::string_view list) {
  constexpr std::string_view kBetween = "[], \t\"'";
  while (!list.empty()) {
    list.remove_prefix(std::min(list.find_first_not_of(kBetween), list.size()));
    const std::size_t end = std::min(list.find_first_of(kBetween), list.size());
    if (!names_key(std::string(list.substr(0, end)))) {
      return false;
    }
    list.remove_prefix(end);
  }
  return true;
}

class Recorder {
 public:
  // Adds a word as it is.
  void show(const std::string& word) { result_.words.push_back(word); }

  // Adds a word with a digest in the place of its text from `begin` on.
  void hide(const std::string& word, std::size_t begin = 0,
            std::size_t length = std::string::npos) {
    const std::string text = word.substr(begin, length);
    if (text.empty()) {
      show(word);
      return;
    }
    result_.hidden.push_back(text);
    result_.words.push_back(word.substr(0, begin) + "sha256:" + sha256_hex(text) +
                            word.substr(begin + text.size()));
  }

  RecordedArguments take() { return std::move(result_); }

 private:
  RecordedArguments result_;
};

RecordedArguments without_prompts(const std::vector<std::string>& arguments) {
  Recorder recorder;
  recorder.show(arguments[0]);
  bool is_shown = false;  // whether the next word is the value of an option that is shown
  for (auto word = arguments.begin() + 1; word != arguments.end(); ++word) {
    const std::size_t equals = word->find('=');
    const bool shows_value = is_among(kShownOptions, word->substr(0, equals));
    if (is_shown || !word->starts_with("--")) {
      is_shown ? recorder.show(*word) : recorder.hide(*word);
      is_shown = false;
    } else if (equals == std::string::npos || shows_value) {
      recorder.show(*word);
      is_shown = equals == std::string::npos && shows_value;
    } else {
      recorder.hide(*word, equals + 1);
    }
  }
  return recorder.take();
}

RecordedArguments without_secrets(const std::vector<std::string>& arguments) {
  Recorder recorder;
  bool is_key = false;  // whether the next word is the value of an option that names a key
  for (const std::string& word : arguments) {
    const bool is_option = is_key_option(word);
    const bool has_value = word.find('=') != std::string::npos;
    const std::size_t value = is_option && has_value ? word.find('=') + 1 : 0;
    const std::string_view secret = secret_in_uri(word);
    const bool is_list = word.starts_with(kKeysAssignment);
    if (is_option ? has_value : is_key) {
      names_key(word.substr(value)) ? recorder.show(word) : recorder.hide(word, value);
    } else if (is_list && !name_keys(std::string_view(word).substr(kKeysAssignment.size()))) {
      recorder.hide(word, kKeysAssignment.size());
    } else if (!secret.empty()) {
      recorder.hide(word, static_cast<std::size_t>(secret.data() - word.data()), secret.size());
    } else {
      recorder.show(word);
    }
    is_key = is_option && !has_value;
  }
  return recorder.take();
}

}  // namespace

RecordedArguments recorded_arguments(const std::vector<std::string>& arguments) {
  return arguments.empty() || arguments[0] != "generate" ? without_secrets(arguments)
                                                         : without_prompts(arguments);
}

}  // namespace trireme
