// A value that most have not: as large as a pointer, and as good as a member otherwise.
#pragma once

#include <compare>
#include <memory>

namespace hpcbatch {

template <class T>
class Rare {
 public:
  Rare() = default;
  Rare(const Rare& other) : value_(other.value_ ? std::make_unique<T>(*other.value_) : nullptr) {}
  Rare(Rare&&) noexcept = default;
  Rare& operator=(const Rare& other) {
    if (this != &other) value_ = other.value_ ? std::make_unique<T>(*other.value_) : nullptr;
    return *this;
  }
  Rare& operator=(Rare&&) noexcept = default;
  ~Rare() = default;

  /// Where there is none, what a new one holds.
  const T& get() const {
    static const T none{};
    return value_ ? *value_ : none;
  }
  const T* operator->() const { return &get(); }
  T& edit() {
    if (!value_) value_ = std::make_unique<T>();
    return *value_;
  }

  friend bool operator==(const Rare& a, const Rare& b) { return a.get() == b.get(); }
  friend auto operator<=>(const Rare& a, const Rare& b) { return a.get() <=> b.get(); }

 private:
  std::unique_ptr<T> value_;
};

/// As std::optional, with the value elsewhere.
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

}  // namespace hpcbatch
