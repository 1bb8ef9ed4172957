// The one way to call a plugin: whatever it throws becomes an error that names it.
#pragma once

#include "hpcbatch/result.hpp"

#include <exception>
#include <string>
#include <string_view>
#include <type_traits>

namespace hpcbatch {

// What a thread does: named in the log where a fault ends our process by a signal.

/// Lives on the stack for as long as it is done; those of a thread are nested.  `text` outlives it.
class Doing {
 public:
  enum class Code { Ours, Plugin };
  explicit Doing(const std::string& text, Code code = Code::Ours) noexcept;
  ~Doing();
  Doing(const Doing&) = delete;
  Doing& operator=(const Doing&) = delete;

  const char* text() const noexcept { return text_; }
  const Doing* outer() const noexcept { return outer_; }
  bool is_in_plugin() const noexcept { return code_ == Code::Plugin; }

 private:
  const char* text_;
  Code code_;
  const Doing* outer_;
};

/// From now on a signal by which a fault ends this process is named on standard error, with what its
/// thread did; the process ends by it all the same.
void name_crashes();

namespace detail {
template <class T>
struct GuardedAs {
  using type = Result<T>;
};
template <class T>
struct GuardedAs<Result<T>> {
  using type = Result<T>;
};
}  // namespace detail

/// Calls, and returns what the call returns as a Result; one that already is a Result stays as it
/// is.
template <class Call>
auto guarded(std::string_view plugin, Call&& call) ->
    typename detail::GuardedAs<std::invoke_result_t<Call>>::type {
  const std::string doing = "calling plugin " + std::string(plugin);
  const Doing named(doing, Doing::Code::Plugin);
  // The text is copied inside the handler: the exception itself belongs to the plugin.
  try {
    if constexpr (std::is_void_v<std::invoke_result_t<Call>>) {
      call();
      return {};
    } else {
      return call();
    }
  } catch (const std::exception& e) {
    return Error{Error::Kind::Rejected, "plugin " + std::string(plugin) + ": " + e.what()};
  } catch (...) {
    return Error{Error::Kind::Rejected, "plugin " + std::string(plugin) +
                                            ": it threw something that is no std::exception"};
  }
}

}  // namespace hpcbatch
