// Values that most have not: as large as a pointer, and as good as members otherwise.
#pragma once

#include <compare>
#include <memory>

namespace hpcbatch {

/// As std::optional, with the value elsewhere: copied and compared with it.
template <class T>
class RareOptional {
 public:
  RareOptional() = default;
  RareOptional(const T& value) : value_(std::make_unique<T>(value)) {}  // NOLINT: as std::optional
  RareOptional(const RareOptional& other)
      : value_(other.value_ ? std::make_unique<T>(*other.value_) : nullptr) {}
  RareOptional(RareOptional&&) noexcept = default;
  RareOptional& operator=(const RareOptional& other) {
    if (this != &other) value_ = other.value_ ? std::make_unique<T>(*other.value_) : nullptr;
    return *this;
  }
  RareOptional& operator=(RareOptional&&) noexcept = default;
  ~RareOptional() = default;

  bool has_value() const { return value_ != nullptr; }
  explicit operator bool() const { return has_value(); }
  const T* operator->() const { return value_.get(); }
  T* operator->() { return value_.get(); }
  const T& operator*() const { return *value_; }
  T& operator*() { return *value_; }
  T& emplace() {
    value_ = std::make_unique<T>();
    return *value_;
  }
  void reset() { value_.reset(); }

  friend bool operator==(const RareOptional& a, const RareOptional& b) {
    return a.value_ && b.value_ ? *a.value_ == *b.value_ : !a.value_ == !b.value_;
  }
  friend std::strong_ordering operator<=>(const RareOptional& a, const RareOptional& b) {
    if (a.value_ && b.value_) return *a.value_ <=> *b.value_;
    return a.has_value() <=> b.has_value();
  }

 private:
  std::unique_ptr<T> value_;
};

/// One that is always there to be read: where nothing was written, as a new one.
template <class T>
class Rare {
 public:
  const T& get() const {
    static const T none{};
    return value_ ? *value_ : none;
  }
  const T* operator->() const { return &get(); }
  T& edit() { return value_ ? *value_ : value_.emplace(); }

  friend bool operator==(const Rare& a, const Rare& b) { return a.get() == b.get(); }
  friend auto operator<=>(const Rare& a, const Rare& b) { return a.get() <=> b.get(); }

 private:
  RareOptional<T> value_;
};

}  // namespace hpcbatch
