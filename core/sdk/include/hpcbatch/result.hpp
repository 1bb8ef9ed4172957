// A value or the reason why there is none: what every call returns that the world can refuse.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace hpcbatch {

/// Why a call did not succeed.  `Transient`: the same call may succeed later.  `Rejected`: it will
/// not, unless something is changed by a person.  `text` says what we tried, what happened and what
/// to look at.
struct Error {
  enum class Kind { Transient, Rejected };
  Kind kind{Kind::Rejected};
  std::string text;
};

/// Either a `T` or an `Error`; the member names are those of `std::expected`, which is to replace
/// it.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value)
      : held_(std::in_place_index<0>, std::move(value)) {}  // NOLINT: implicit on purpose
  Result(Error error) : held_(std::in_place_index<1>, std::move(error)) {}  // NOLINT

  bool has_value() const { return held_.index() == 0; }
  explicit operator bool() const { return has_value(); }
  const T& value() const { return std::get<0>(held_); }
  T& value() { return std::get<0>(held_); }
  const T& operator*() const { return value(); }
  T& operator*() { return value(); }
  const T* operator->() const { return &value(); }
  T* operator->() { return &value(); }
  const Error& error() const { return std::get<1>(held_); }

 private:
  std::variant<T, Error> held_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT: implicit on purpose

  bool has_value() const { return !error_; }
  explicit operator bool() const { return has_value(); }
  const Error& error() const { return *error_; }

 private:
  std::optional<Error> error_;
};

}  // namespace hpcbatch
