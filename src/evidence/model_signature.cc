#include "src/evidence/model_signature.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "src/base/data_error_in.h"
#include "src/base/digest.h"
#include "src/base/error.h"
#include "src/base/json_fields.h"
#include "src/base/printable.h"
#include "src/evidence/subject_json.h"

namespace trireme {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::string_view kBundleType = "application/vnd.dev.sigstore.bundle.v0.3+json";
constexpr std::string_view kModelPredicate = "https://model_signing/signature/v1.0";
constexpr const char* kByFiles = "files";
constexpr const char* kHashType = "sha256";

int value_of_digit(char digit) { return digit <= '9' ? digit - '0' : digit - 'a' + 10; }

// Returns the SHA-256 over the digests as bytes, in their order.
std::string digest_of_all(const std::vector<Subject>& files) {
  std::string bytes;
  for (const Subject& file : files) {
    for (std::size_t at = 0; at + 1 < file.sha256.size(); at += 2) {
      bytes += static_cast<char>(value_of_digit(file.sha256[at]) * 16 +
                                 value_of_digit(file.sha256[at + 1]));
    }
  }
  return sha256_hex(bytes);
}

// Sorts by the names of folders and files one after another, as model-signing does.
bool comes_before(const Subject& a, const Subject& b) {
  return std::lexicographical_compare(
      a.name.begin(), a.name.end(), b.name.begin(), b.name.end(), [](char x, char y) {
        const auto rank = [](char c) { return c == '/' ? -1 : static_cast<unsigned char>(c); };
        return rank(x) < rank(y);
      });
}

std::string statement_of(const ModelStatement& model) {
  ordered_json resources = ordered_json::array();
  for (const Subject& file : model.files) {
    resources.push_back({{"name", file.name}, {"algorithm", kHashType}, {"digest", file.sha256}});
  }
  ordered_json predicate = {{"serialization",
                             {{"method", kByFiles},
                              {"hash_type", kHashType},
                              {"allow_symlinks", false},
                              {"ignore_paths", ordered_json::array({kModelSignatureName})}}},
                            {"resources", std::move(resources)}};
  if (!model.checkpoint.empty()) {
    predicate["checkpoint"] = {{"step", model.step}, {"digest", {{"sha256", model.checkpoint}}}};
  }
  if (!model.finished.empty()) {
    predicate["finished"] = model.finished;
  }
  const ordered_json statement = {
      {"_type", kStatementForm},
      {"subject", subjects_json({{model.name, digest_of_all(model.files)}})},
      {"predicateType", kModelPredicate},
      {"predicate", std::move(predicate)}};
  return statement.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

// Returns the paths that the statement leaves out. Those that lead out of the folder, as other
// programs may name them, mean nothing.
std::vector<std::string> ignored_paths(const json& serialization) {
  std::vector<std::string> paths;
  if (serialization.contains("ignore_paths")) {
    for (const json& each : array_field(serialization, "ignore_paths")) {
      if (!each.is_string()) {
        throw DataError("field 'ignore_paths': expected texts");
      }
      if (const auto& path = each.get_ref<const std::string&>(); stays_inside(path)) {
        paths.push_back(path);
      }
    }
  }
  return paths;
}

Subject parse_resource(const json& object) {
  const std::string& name = text_field(object, "name");
  if (!stays_inside(name)) {
    throw DataError(fmt::format("'{}' is not the name of a file in this folder", printable(name)));
  }
  if (const std::string& kind = text_field(object, "algorithm"); kind != kHashType) {
    throw DataError(fmt::format("{}: digests of the kind '{}', but only sha256 can be checked",
                                printable(name), printable(kind)));
  }
  const std::string& digest = text_field(object, "digest");
  if (!is_sha256(digest)) {
    throw DataError(fmt::format("{}: '{}' is not a SHA-256", printable(name), printable(digest)));
  }
  return {name, digest};
}

void read_own_fields(const json& predicate, ModelStatement& model) {
  if (predicate.contains("checkpoint")) {
    const json& checkpoint = object_field(predicate, "checkpoint");
    model.step = count_field(checkpoint, "step");
    model.checkpoint = sha256_field(checkpoint, "checkpoint");
  }
  if (predicate.contains("finished")) {
    model.finished = text_field(predicate, "finished");
  }
}

ModelStatement parse_model(std::string_view text) {
  const json statement = parse_json(text);
  const std::vector<Subject> subject = parse_subjects(statement, kModelPredicate);
  const json& predicate = object_field(statement, "predicate");
  const json& serialization = object_field(predicate, "serialization");
  if (const std::string& method = text_field(serialization, "method"); method != kByFiles) {
    throw DataError(fmt::format("its digests are of '{}', but only whole files can be checked",
                                printable(method)));
  }
  ModelStatement model;
  model.name = subject[0].name;
  model.ignored = ignored_paths(serialization);
  for (const json& each : array_field(predicate, "resources")) {
    model.files.push_back(parse_resource(each));
  }
  if (model.files.empty()) {
    throw DataError("the statement is about no file");
  }
  if (subject.size() != 1 || digest_of_all(model.files) != subject[0].sha256) {
    throw DataError("the digest of the model is not that of the digests of its files");
  }
  read_own_fields(predicate, model);
  return model;
}

}  // namespace

void check_signs_models(const SigningKey& key) {
  if (key.public_key().kind() != PublicKey::Kind::ecdsa_p256) {
    throw ConfigError(
        "models are signed with keys of ECDSA, and this is one of Ed25519: use a key in a token, "
        "or make one with `trireme audit keygen --algorithm ecdsa --out FILE`");
  }
}

std::string model_signature_text(ModelStatement statement, const SigningKey& key) {
  check_signs_models(key);
  std::sort(statement.files.begin(), statement.files.end(), comes_before);
  const Envelope envelope =
      make_envelope(std::string(kStatementType), statement_of(statement), &key);
  const ordered_json bundle = {{"mediaType", kBundleType},
                               {"verificationMaterial",
                                {{"publicKey", {{"hint", sha256_hex(key.public_key().to_pem())}}},
                                 {"tlogEntries", ordered_json::array()}}},
                               {"dsseEnvelope", to_json(envelope)}};
  return bundle.dump() + "\n";
}

SignedModel parse_model_signature(std::string_view text, const std::string& origin,
                                  const std::vector<TrustedKey>& trusted) {
  try {
    const json bundle = parse_json(text);
    if (const std::string& type = text_field(bundle, "mediaType"); type != kBundleType) {
      throw DataError(fmt::format("its type is '{}', not '{}'", printable(type), kBundleType));
    }
    const Envelope envelope = envelope_of(object_field(bundle, "dsseEnvelope"));
    if (envelope.payload_type != kStatementType) {
      throw DataError(fmt::format("its payload has the type '{}', not '{}'",
                                  printable(envelope.payload_type), kStatementType));
    }
    return {parse_model(envelope.payload), find_signature(envelope, trusted)};
  } catch (const DataError& error) {
    throw data_error_in(fmt::format("{}: not the signature of a model", origin), error);
  }
}

}  // namespace trireme
