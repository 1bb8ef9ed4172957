// One plugin of kind tool; each definition given to the compiler breaks it in one way.
#include "hpcbatch/input_facts.hpp"
#include "hpcbatch/tool.hpp"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <unistd.h>

#ifdef UNDEFINED_SYMBOL
int not_there();
#endif

namespace {

struct LocalFailure : std::exception {
  const char* what() const noexcept override { return "no such model"; }
};

#ifdef ABORTING_FACTS
class Broken final : public hpcbatch::Tool, public hpcbatch::InputFacts {
 public:
  std::vector<hpcbatch::FactDescription> facts() const override { return {{.name = "seconds"}}; }
  std::map<std::string, double> facts_of(const hpcbatch::InputFile&) const override {
    std::abort();
  }
#else
class Broken final : public hpcbatch::Tool {
 public:
#endif
  explicit Broken(const char*) {
#ifdef THROWING_CONSTRUCTOR
    throw LocalFailure();
#endif
#ifdef THROWING_INT
    throw 42;
#endif
  }
  hpcbatch::ToolDescription describe() const override {
    return {.summary = "sound enough"};
  }
  void validate(const hpcbatch::ToolRequest&) const override {
#ifdef ENDLESS
    for (volatile bool goes_on = true; goes_on;) {
    }
#endif
  }
  hpcbatch::ToolTask render(const hpcbatch::ToolRequest&) const override {
#ifdef ABORTING
    std::abort();
#endif
#ifdef EXITING
    std::_Exit(7);
#endif
#ifdef BAD_POINTER
    *reinterpret_cast<volatile int*>(8) = 1;
#endif
#ifdef TEN_GIGABYTES
    std::vector<std::string> all;
    while (all.size() < 10'240) all.emplace_back(std::size_t{1} << 20, 'x');
#endif
#ifdef THROWS_A_NUMBER
    throw 42;
#endif
#ifdef TALKATIVE
    std::puts("what somebody prints");
    std::fflush(stdout);
#endif
#ifdef CLOSING
    for (int descriptor = 3; descriptor < 50; ++descriptor) ::close(descriptor);
#endif
#ifdef THROWING_RENDER
    throw LocalFailure();
#else
    return {.argv = {"true"}, .environment = {}, .container = {}, .needs = {}};
#endif
  }
};

#ifdef SILENT_CREATE
constexpr auto kCreate = [](const char*, char*, std::uint32_t) -> void* { return nullptr; };
#else
constexpr auto kCreate = &hpcbatch::detail::create_plugin<hpcbatch::Tool, Broken>;
#endif

}  // namespace

#ifndef MAGIC
#define MAGIC HPCBATCH_ABI_MAGIC
#endif
#ifndef MAJOR
#define MAJOR HPCBATCH_ABI_MAJOR
#endif
#ifndef MINOR
#define MINOR HPCBATCH_ABI_MINOR
#endif
#ifndef SIZE
#define SIZE sizeof(hpcbatch_plugin_descriptor)
#endif
#ifndef NAME
#define NAME PLUGIN_NAME
#endif

#ifdef NO_DESCRIPTOR
extern "C" __attribute__((visibility("default"))) void* something_else() {
  return reinterpret_cast<void*>(+kCreate);
}
#else
// NOLINTNEXTLINE(readability-identifier-naming): a name of C
extern "C" __attribute__((visibility("default"))) const hpcbatch_plugin_descriptor hpcbatch_plugin;
extern "C" const hpcbatch_plugin_descriptor hpcbatch_plugin = {
    MAGIC, MAJOR, MINOR, SIZE, HPCBATCH_KIND_TOOL, NAME, "1", HPCBATCH_FINGERPRINT, kCreate};
#endif

#ifdef UNDEFINED_SYMBOL
extern "C" __attribute__((visibility("default"))) int uses_it() {
  return not_there();
}
#endif
