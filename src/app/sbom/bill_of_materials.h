// A BillOfMaterials says what this process consists of: the program and every shared object that
// the dynamic linker has loaded, each with its SHA-256 and, where dpkg's files can be read, the
// Debian package that it comes from. It lists what is loaded, not what is secure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/app/sbom/debian_package.h"

namespace trireme {

struct LoadedObject {
  std::string path;    // absolute, without symbolic links
  std::string soname;  // empty if the object has none
  std::string sha256;  // 64 digits
  std::optional<DebianPackage> package;
};

struct BillOfMaterials {
  std::string name;
  std::string version;
  std::string commit;
  std::string path;
  std::string sha256;                 // of the program's file, 64 digits
  std::vector<LoadedObject> objects;  // sorted by path, which is unique
  std::string created;                // "2025-01-31T12:00:00Z"
};

// Describes this process. Throws NotFound, PolicyError or IoError if the file of the program or of
// an object cannot be read.
BillOfMaterials own_bill_of_materials(std::string_view name, std::string_view version,
                                      std::string_view commit);

// Returns the text of the environment variable SOURCE_DATE_EPOCH as a time, or the current time if
// there is none (null). Throws ConfigError for anything but seconds of the years 1970 to 9999.
std::string creation_time(const char* source_date_epoch);

// Returns a UUID (RFC 9562, version 8) made from the digests, names and packages. It depends
// neither on the time nor on where the files lie.
std::string document_uuid(const BillOfMaterials& bill);
// Returns the object's SONAME, or the name of its file.
std::string name_of(const LoadedObject& object);
// Returns an identifier that is unique in the document, in letters, digits, "." and "-":
// "Library-12-libm.so.6". index: of the object in the bill.
std::string object_id(const BillOfMaterials& bill, std::size_t index);
inline constexpr const char* kProgramId = "Program";

}  // namespace trireme
