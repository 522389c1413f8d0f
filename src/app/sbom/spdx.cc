// Writes a bill of materials as SPDX 2.3.
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "src/app/sbom/formats.h"

namespace trireme {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kDocumentId = "SPDXRef-DOCUMENT";
constexpr const char* kUnknown = "NOASSERTION";

std::string spdx_id(const std::string& id) { return "SPDXRef-" + id; }

// A version is optional; `version` is empty if it is unknown.
Json package_head(const std::string& id, const std::string& name, const std::string& version,
                  const std::string& path, const std::string& sha256) {
  Json head = {{"SPDXID", spdx_id(id)}, {"name", name}};
  if (!version.empty()) {
    head["versionInfo"] = version;
  }
  head.update({{"packageFileName", path},
               {"supplier", kUnknown},
               {"downloadLocation", kUnknown},
               {"filesAnalyzed", false},
               {"checksums", Json::array({{{"algorithm", "SHA256"}, {"checksumValue", sha256}}})},
               {"licenseConcluded", kUnknown},
               {"licenseDeclared", kUnknown},
               {"copyrightText", kUnknown}});
  return head;
}

Json program_package(const BillOfMaterials& bill) {
  Json package = package_head(kProgramId, bill.name, bill.version, bill.path, bill.sha256);
  package["sourceInfo"] = fmt::format("commit {}", bill.commit);
  package["primaryPackagePurpose"] = "APPLICATION";
  return package;
}

std::string origin_text(const LoadedObject& object) {
  std::string text = object.soname.empty() ? "no SONAME" : fmt::format("SONAME {}", object.soname);
  if (object.package) {
    const DebianPackage& package = *object.package;
    text +=
        fmt::format("; Debian package {} {} {}; source package {} {}", package.name,
                    package.version, package.architecture, package.source, package.source_version);
    if (!package.copyright.empty()) {
      text += fmt::format("; copyright file {}", package.copyright);
    }
  }
  return text;
}

Json library_package(const BillOfMaterials& bill, std::size_t index) {
  const LoadedObject& object = bill.objects[index];
  Json package =
      package_head(object_id(bill, index), name_of(object),
                   object.package ? object.package->version : "", object.path, object.sha256);
  package["sourceInfo"] = origin_text(object);
  package["primaryPackagePurpose"] = "LIBRARY";
  if (object.package) {
    package["externalRefs"] = Json::array({{{"referenceCategory", "PACKAGE-MANAGER"},
                                            {"referenceType", "purl"},
                                            {"referenceLocator", package_url(*object.package)}}});
  }
  return package;
}

Json relationship(const std::string& from, const char* type, const std::string& to) {
  return {{"spdxElementId", from}, {"relationshipType", type}, {"relatedSpdxElement", to}};
}

}  // namespace

Json spdx_json(const BillOfMaterials& bill) {
  const std::string program = spdx_id(kProgramId);
  Json packages = Json::array({program_package(bill)});
  Json relationships = Json::array({relationship(kDocumentId, "DESCRIBES", program)});
  for (std::size_t i = 0; i < bill.objects.size(); ++i) {
    packages.push_back(library_package(bill, i));
    relationships.push_back(relationship(program, "DEPENDS_ON", spdx_id(object_id(bill, i))));
  }
  const std::string tool = fmt::format("{}-{}", bill.name, bill.version);
  return {
      {"spdxVersion", "SPDX-2.3"},
      {"dataLicense", "CC0-1.0"},
      {"SPDXID", kDocumentId},
      {"name", tool},
      {"documentNamespace",
       fmt::format("https://spdx.org/spdxdocs/{}-{}", tool, document_uuid(bill))},
      {"creationInfo", {{"created", bill.created}, {"creators", Json::array({"Tool: " + tool})}}},
      {"packages", packages},
      {"relationships", relationships}};
}

}  // namespace trireme
