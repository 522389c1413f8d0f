// Write a bill of materials in the formats that scanners and auditors read. Pure functions. Texts
// that are not UTF-8 keep their bytes; the printer of JSON replaces them.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "src/app/sbom/bill_of_materials.h"

namespace trireme {

// Returns the bill as CycloneDX 1.5 (cyclonedx.org, bom-1.5.schema.json):
//   {"bomFormat": "CycloneDX", "specVersion": "1.5", "serialNumber": "urn:uuid:...", "version": 1,
//    "metadata": {"timestamp", "component": the program},
//    "components": [{"type": "library", "bom-ref", "name", "version", "hashes", "purl",
//                    "properties"}],
//    "dependencies": [{"ref": "Program", "dependsOn": [every library]}, {"ref": ...}]}
nlohmann::ordered_json cyclonedx_json(const BillOfMaterials& bill);

// Returns the bill as SPDX 2.3 (ISO/IEC 5962, spdx.github.io/spdx-spec/v2.3):
//   {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name",
//    "documentNamespace", "creationInfo": {"created", "creators"},
//    "packages": [the program, then one for each library],
//    "relationships": [DOCUMENT DESCRIBES program, program DEPENDS_ON each library]}
nlohmann::ordered_json spdx_json(const BillOfMaterials& bill);

}  // namespace trireme
