#include "plugin_host/library.hpp"

#include <fmt/format.h>
#include <boost/dll/shared_library.hpp>

#include <dlfcn.h>

namespace hpcbatch {

Result<const hpcbatch_plugin_descriptor*> open_library(const std::filesystem::path& file) {
  // Closing a library whose code an exception or a thread-local still needs crashes; so none is
  // ever unmapped.
  const auto mode = static_cast<boost::dll::load_mode::type>(RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  try {
    boost::dll::shared_library library;
    // The overload that throws: the other one loses the text of the loader.
    library.load(file, mode);
    if (!library.has("hpcbatch_plugin")) {
      return Error{
          Error::Kind::Rejected,
          fmt::format("{} is no plugin of hpcbatch: it exports no hpcbatch_plugin; build it with "
                      "hpcbatch_add_plugin",
                      file.string())};
    }
    return &library.get<const hpcbatch_plugin_descriptor>("hpcbatch_plugin");
  } catch (const std::exception& e) {
    return Error{Error::Kind::Rejected,
                 fmt::format("cannot load plugin {}: {}", file.string(), e.what())};
  }
}

}  // namespace hpcbatch
