// `parts [--json] [options of Google Benchmark]`.
#include <benchmark/benchmark.h>

#include <cstring>
#include <string>
#include <vector>

int main(int argc, char** argv) {
  std::vector<std::string> words{argv[0]};
  for (int i = 1; i < argc; ++i)
    words.emplace_back(std::strcmp(argv[i], "--json") == 0 ? "--benchmark_format=json" : argv[i]);
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  int count = static_cast<int>(pointers.size());
  benchmark::Initialize(&count, pointers.data());
  if (benchmark::ReportUnrecognizedArguments(count, pointers.data())) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
