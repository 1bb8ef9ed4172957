// The one way to call a plugin: whatever it throws becomes an error that names it.
#pragma once

#include "plugin_host/doing.hpp"

#include "hpcbatch/result.hpp"

#include <exception>
#include <string>
#include <string_view>
#include <type_traits>

namespace hpcbatch {

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
