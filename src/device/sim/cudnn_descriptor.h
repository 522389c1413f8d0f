// Descriptor is what cuDNN's interface calls a backend descriptor: a kind and named values, which
// cannot change any more once it is final. Copies of values are kept; descriptors that it refers to
// outlive it, as with cuDNN. One thread.
#pragma once

#include <cstring>
#include <map>
#include <vector>

#include <cudnn.h>

namespace sim {

class Descriptor {
 public:
  explicit Descriptor(cudnnBackendDescriptorType_t type) : type_(type) {}

  cudnnBackendDescriptorType_t type() const { return type_; }
  bool is_final() const { return is_final_; }
  // Checks what the kind asks for.
  cudnnStatus_t finalize();
  cudnnStatus_t set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                    std::int64_t count, const void* values);

  bool has(cudnnBackendAttributeName_t name) const { return values_.contains(name); }
  template <class T>
  std::vector<T> all(cudnnBackendAttributeName_t name) const {
    std::vector<T> values;
    if (const auto found = values_.find(name); found != values_.end()) {
      values.resize(found->second.size() / sizeof(T));
      std::memcpy(values.data(), found->second.data(), values.size() * sizeof(T));
    }
    return values;
  }
  template <class T>
  T one(cudnnBackendAttributeName_t name, T otherwise = {}) const {
    T value = otherwise;
    if (const auto found = values_.find(name); found != values_.end()) {
      std::memcpy(&value, found->second.data(), sizeof value);
    }
    return value;
  }
  const Descriptor* descriptor(cudnnBackendAttributeName_t name) const {
    return one<const Descriptor*>(name);
  }

 private:
  cudnnBackendDescriptorType_t type_;
  bool is_final_ = false;
  std::map<cudnnBackendAttributeName_t, std::vector<char>> values_;
};

}  // namespace sim
