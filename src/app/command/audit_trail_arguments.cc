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

// Returns the option that a word gives, without its value: "--key" in "--key=file:a", "-k" in
// "-kfile:a"; or "" if it gives none. A number below zero is a value.
std::string_view option_in(std::string_view word) {
  if (word.size() < 2 || word[0] != '-' || word == "--" || (word[1] >= '0' && word[1] <= '9') ||
      word[1] == '.') {
    return {};
  }
  return word.substr(0, word.find('='));
}

// Returns whether an option's value names a key, also where its name is mistyped as in -key or
// --keys.
bool is_key_option(std::string_view option) {
  option.remove_prefix(std::min(option.find_first_not_of('-'), option.size()));
  return is_among(kKeyOptions, option) || option.find("key") != std::string_view::npos;
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

// Records the arguments of a command in which keys may be named.
class SecretsRecorder {
 public:
  explicit SecretsRecorder(const OptionNames& known) : known_(known) {}

  void add(const std::string& word) {
    const std::string_view option = option_in(word);
    if (!option.empty()) {
      add_option(word, option);
    } else if (next_ == Next::secret || (next_ != Next::plain && !names_key(word))) {
      recorder_.hide(word);
      next_ = Next::rest_of_secret;
    } else {
      add_plain(word);
      next_ = Next::plain;
    }
  }
  RecordedArguments take() { return recorder_.take(); }

 private:
  // How the next word is recorded unless it is an option. A word behind a hidden value may be more
  // of it, as in a passphrase with blanks.
  enum class Next { plain, secret, key, rest_of_secret };

  bool is_known(std::string_view option) const {
    return known_.empty() || std::find(known_.begin(), known_.end(), option) != known_.end();
  }

  void add_option(const std::string& word, std::string_view option) {
    const bool is_unknown = !is_known(option);
    const bool is_short = is_unknown && word[1] != '-' && is_known(word.substr(0, 2));
    const std::size_t value = is_short ? 2 : option.size() + 1;  // where it would begin
    const bool names = is_key_option(is_short ? option.substr(0, 2) : option);
    next_ = is_unknown && !is_short ? Next::secret : names ? Next::key : Next::plain;
    if (word.size() <= value) {
      recorder_.show(word);  // an empty value, as in "--key= X", is followed by what was meant
      return;
    }
    if (next_ == Next::secret || (next_ == Next::key && !names_key(word.substr(value)))) {
      recorder_.hide(word, value);
      next_ = Next::rest_of_secret;
    } else {
      add_plain(word);
      next_ = Next::plain;
    }
  }

  void add_plain(const std::string& word) {
    const std::string_view secret = secret_in_uri(word);
    if (word.starts_with(kKeysAssignment) &&
        !name_keys(std::string_view(word).substr(kKeysAssignment.size()))) {
      recorder_.hide(word, kKeysAssignment.size());
    } else if (!secret.empty()) {
      recorder_.hide(word, static_cast<std::size_t>(secret.data() - word.data()), secret.size());
    } else {
      recorder_.show(word);
    }
  }

  const OptionNames& known_;
  Recorder recorder_;
  Next next_ = Next::plain;
};

RecordedArguments without_secrets(const std::vector<std::string>& arguments,
                                  const OptionNames& known) {
  SecretsRecorder recorder(known);
  for (const std::string& word : arguments) {
    recorder.add(word);
  }
  return recorder.take();
}

}  // namespace

RecordedArguments recorded_arguments(const std::vector<std::string>& arguments,
                                     const OptionNames& known) {
  return arguments.empty() || arguments[0] != "generate" ? without_secrets(arguments, known)
                                                         : without_prompts(arguments);
}

}  // namespace trireme
