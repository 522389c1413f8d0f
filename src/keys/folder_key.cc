#include "src/keys/folder_key.h"

namespace trireme {

std::string keys_text(const FolderKey& key, std::string_view seal) {
  WrappedKeys wrapped;
  wrapped.data_key = key.key.id();
  wrapped.contents = seal;
  wrapped.recipients = key.recipients;
  wrapped.sign(key.key);
  return to_text(wrapped);
}

}  // namespace trireme
