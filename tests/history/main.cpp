// hpcbatch-check-history: says which promise a recorded run broke, and by which records.
#include "history/history.hpp"

#include <CLI/CLI.hpp>

#include <iostream>

int main(int argc, char** argv) {
  CLI::App app(
      "Checks histories that engine and pilots wrote (HPCBATCH_HISTORY) against what hpcbatch "
      "promises.\n"
      "Exits 0 where all promises were kept, 1 where one was broken, 2 where a history cannot be "
      "read.");
  std::vector<std::string> paths;
  hpcbatch::history::Options options;
  app.add_option("PATH", paths, "files, or folders with files *.history")->required();
  app.add_flag("--ended", options.ended,
               "the run is over: whatever has no result and no reason to wait is lost");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const auto history = hpcbatch::history::read_history(paths);
  if (!history) {
    std::cerr << "hpcbatch-check-history: " << history.error().text << '\n';
    return 2;
  }
  const auto breaches = hpcbatch::history::check(history.value(), options);
  for (const auto& breach : breaches)
    std::cout << hpcbatch::history::to_text(breach, history.value());
  std::cout << history.value().size() << " records, " << breaches.size() << " broken promises\n";
  return breaches.empty() ? 0 : 1;
}
