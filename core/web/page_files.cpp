#include "web/page_files.hpp"

#include "web/page_content.hpp"

#include <algorithm>
#include <array>

namespace hpcbatch::web {

const PageFile* page_file(std::string_view name) {
  static constexpr std::array<PageFile, 7> kFiles{{{"/index.html", "text/html", kIndex},
                                                   {"/app.js", "text/javascript", kApp},
                                                   {"/views.js", "text/javascript", kViews},
                                                   {"/style.css", "text/css", kStyle},
                                                   {"/icon.svg", "image/svg+xml", kIcon},
                                                   {"/uplot.js", "text/javascript", kPlot},
                                                   {"/uplot.css", "text/css", kPlotStyle}}};
  const auto found = std::find_if(kFiles.begin(), kFiles.end(),
                                  [&](const PageFile& file) { return file.name == name; });
  return found == kFiles.end() ? nullptr : &*found;
}

}  // namespace hpcbatch::web
