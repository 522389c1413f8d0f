// Writes a bill of materials as CycloneDX 1.5.
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "src/app/sbom/formats.h"

namespace trireme {
namespace {

using Json = nlohmann::ordered_json;

// Adds a property unless its value is empty.
void add_property(Json& properties, const char* name, const std::string& value) {
  if (!value.empty()) {
    properties.push_back({{"name", std::string("trireme:") + name}, {"value", value}});
  }
}

Json sha256_hashes(const std::string& sha256) {
  return Json::array({{{"alg", "SHA-256"}, {"content", sha256}}});
}

Json program_component(const BillOfMaterials& bill) {
  Json properties = Json::array();
  add_property(properties, "path", bill.path);
  add_property(properties, "commit", bill.commit);
  return {{"type", "application"},
          {"bom-ref", kProgramId},
          {"name", bill.name},
          {"version", bill.version},
          {"hashes", sha256_hashes(bill.sha256)},
          {"properties", properties}};
}

Json library_component(const BillOfMaterials& bill, std::size_t index) {
  const LoadedObject& object = bill.objects[index];
  Json component = {
      {"type", "library"}, {"bom-ref", object_id(bill, index)}, {"name", name_of(object)}};
  if (object.package) {
    component["version"] = object.package->version;
  }
  component["hashes"] = sha256_hashes(object.sha256);
  Json properties = Json::array();
  add_property(properties, "path", object.path);
  add_property(properties, "soname", object.soname);
  if (object.package) {
    const DebianPackage& package = *object.package;
    component["purl"] = package_url(package);
    add_property(properties, "debian:package", package.name);
    add_property(properties, "debian:version", package.version);
    add_property(properties, "debian:architecture", package.architecture);
    add_property(properties, "debian:source", package.source);
    add_property(properties, "debian:source-version", package.source_version);
    add_property(properties, "debian:copyright", package.copyright);
  }
  component["properties"] = properties;
  return component;
}

}  // namespace

Json cyclonedx_json(const BillOfMaterials& bill) {
  Json components = Json::array();
  Json ids = Json::array();
  Json leaves = Json::array();
  for (std::size_t i = 0; i < bill.objects.size(); ++i) {
    components.push_back(library_component(bill, i));
    ids.push_back(object_id(bill, i));
    leaves.push_back({{"ref", object_id(bill, i)}});
  }
  Json dependencies = Json::array({{{"ref", kProgramId}, {"dependsOn", ids}}});
  dependencies.insert(dependencies.end(), leaves.begin(), leaves.end());
  return {{"bomFormat", "CycloneDX"},
          {"specVersion", "1.5"},
          {"serialNumber", fmt::format("urn:uuid:{}", document_uuid(bill))},
          {"version", 1},
          {"metadata", {{"timestamp", bill.created}, {"component", program_component(bill)}}},
          {"components", components},
          {"dependencies", dependencies}};
}

}  // namespace trireme
