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

}  // namespace hpcbatch
