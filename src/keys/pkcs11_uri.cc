#include "src/keys/pkcs11_uri.h"

#include <algorithm>
#include <optional>
#include <set>

#include "src/base/error.h"
#include "src/base/printable.h"

namespace trireme {
namespace {

constexpr std::string_view kExample =
    "write pkcs11:token=NAME;object=NAME?module-path=/PATH.so&pin-source=file:/PATH";
constexpr std::size_t kMostUriBytes = 4096;

struct Attribute {
  std::string_view name;
  std::string value;  // decoded
};

[[noreturn]] void refuse(std::string_view what) {
  throw ConfigError(fmt::format("a pkcs11: URI {}: {}", what, kExample));
}

int digit_of(char c) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const char lower = c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
  const std::size_t at = kDigits.find(lower);
  return at == std::string_view::npos ? -1 : static_cast<int>(at);
}

std::string decode(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    const int high = i + 1 < text.size() ? digit_of(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? digit_of(text[i + 2]) : -1;
    if (high < 0 || low < 0) {
      refuse("has a % without two hexadecimal digits");
    }
    decoded += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return decoded;
}

// Removes the first attribute from `rest` and returns it.
Attribute next_attribute(std::string_view& rest, char separator) {
  const std::string_view text = rest.substr(0, rest.find(separator));
  rest.remove_prefix(std::min(text.size() + 1, rest.size()));
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) {
    refuse(fmt::format("has '{}', which has no value", printable(text)));
  }
  Attribute attribute{text.substr(0, equals), decode(text.substr(equals + 1))};
  const bool has_control_characters =
      std::any_of(attribute.value.begin(), attribute.value.end(),
                  [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; });
  if (attribute.value.empty() || (has_control_characters && attribute.name != "id")) {
    refuse(fmt::format("has an empty value or control characters in {}", printable(text)));
  }
  return attribute;
}

void take_path_attribute(Pkcs11Uri& uri, Attribute attribute) {
  if (attribute.name == "token") {
    uri.token = std::move(attribute.value);
  } else if (attribute.name == "serial") {
    uri.serial = std::move(attribute.value);
  } else if (attribute.name == "manufacturer") {
    uri.manufacturer = std::move(attribute.value);
  } else if (attribute.name == "model") {
    uri.model = std::move(attribute.value);
  } else if (attribute.name == "object") {
    uri.object = std::move(attribute.value);
  } else if (attribute.name == "id") {
    uri.id = std::move(attribute.value);
  } else if (attribute.name != "type" ||
             (attribute.value != "secret-key" && attribute.value != "private")) {
    refuse(
        fmt::format("has {}, but may have token, serial, manufacturer, model, object, id and "
                    "type=secret-key or type=private before the ?",
                    printable(attribute.name)));
  }
}

void take_query_attribute(Pkcs11Uri& uri, Attribute attribute) {
  std::string_view value = attribute.value;
  if (attribute.name == "module-path") {
    if (!value.starts_with('/')) {
      refuse("has a module-path that does not begin with /");
    }
    uri.module_path = value;
  } else if (attribute.name == "pin-source") {
    if (value.starts_with("file:")) {
      value.remove_prefix(5);
    }
    if (value.starts_with("///")) {  // file:///PATH, with an empty host
      value.remove_prefix(2);
    }
    if (!value.starts_with('/') || value.starts_with("//")) {
      refuse("has a pin-source that is no file:/PATH");
    }
    uri.pin_source = value;
  } else {
    refuse(fmt::format("has {}, but may have module-path and pin-source after the ?",
                       printable(attribute.name)));
  }
}

// Does not quote the text, since it may hold a PIN.
void refuse_pin(std::string_view uri) {
  std::string lower(uri);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  if (lower.find("pin-value") != std::string::npos) {
    throw ConfigError(
        "a pkcs11: URI must not hold a PIN (pin-value), which other users can read in lists of "
        "processes and in configurations: change the PIN, write it to a file that only you can "
        "read, and name the file as pin-source=file:/PATH");
  }
}

}  // namespace

Pkcs11Uri parse_pkcs11_uri(std::string_view uri) {
  constexpr std::string_view kScheme = "pkcs11:";
  refuse_pin(uri);
  if (!uri.starts_with(kScheme) || uri.size() > kMostUriBytes) {
    refuse("begins with pkcs11: and has at most 4096 bytes");
  }
  std::string_view path = uri.substr(kScheme.size());
  std::string_view query;
  if (const std::size_t mark = path.find('?'); mark != std::string_view::npos) {
    query = path.substr(mark + 1);
    path = path.substr(0, mark);
  }
  Pkcs11Uri parsed;
  std::set<std::string_view> names;
  const auto take_all = [&](std::string_view rest, char separator, auto take) {
    while (!rest.empty()) {
      Attribute attribute = next_attribute(rest, separator);
      if (!names.insert(attribute.name).second) {
        refuse(fmt::format("has {} twice", printable(attribute.name)));
      }
      take(parsed, std::move(attribute));
    }
  };
  take_all(path, ';', take_path_attribute);
  take_all(query, '&', take_query_attribute);
  if (parsed.token.empty() && parsed.serial.empty()) {
    refuse("has no token");
  }
  if (parsed.object.empty() && parsed.id.empty()) {
    refuse("has no object and no id");
  }
  return parsed;
}

}  // namespace trireme
