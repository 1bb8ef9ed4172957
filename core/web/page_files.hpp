// The files of the page, which are in this program.
#pragma once

#include <string_view>

namespace hpcbatch::web {

struct PageFile {
  std::string_view name;  ///< with its slash
  std::string_view type;
  std::string_view content;
};

/// Null where there is none of that name.
const PageFile* page_file(std::string_view name);

}  // namespace hpcbatch::web
