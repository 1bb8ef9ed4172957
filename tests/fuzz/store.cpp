// A store whose files a disk, or somebody, has changed: it is put together and saved without an end of the program,
// and nothing in it runs as something that nobody asked for.
#include "store/store.hpp"
#include "fuzz/harness.hpp"
#include "store/file/page_sums.hpp"
#include "store/salvage.hpp"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <stdlib.h>

namespace hpcbatch::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr std::array<const char*, 3> kFiles{"", "-wal", "-mark"};
constexpr std::uint64_t kArrays = 12;

std::string whole(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

store::Write array(std::uint64_t id) {
  SaveArrays save{
      .client = "tester", .key = fmt::format("key {}", id), .content = 7, .first = ArrayId{id}};
  NewArray& made = save.arrays.emplace_back();
  made.indices = IndexRange{1, 3};
  made.needs.amounts.set(kCpus, Amount::of(1));
  save.submitted = from_microseconds(1000);
  store::Recipe recipe;
  recipe.bytes = fmt::format("recipe {}", id);
  recipe.environment = std::make_shared<const std::string>("shared surroundings");
  for (int i = 1; i <= 3; ++i)
    recipe.words.edit().items.push_back(fmt::format("text {} of {}", i, id));
  return {save, {recipe}};
}

/// The files of a store as they lie while an engine runs: a part in the database, a part in its log.
class Model {
 public:
  Model() {
    std::string pattern = fs::temp_directory_path() / "hpcbatch-fuzz-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    const std::string file = folder_ + "/model.db";
    for (const bool is_last : {false, true}) {
      auto opened = store::Store::open(file);
      check(opened.has_value(), "a store can be made");
      (*opened)->begin();
      std::vector<store::Write> writes;
      for (std::uint64_t id = is_last ? kArrays : 1; id < (is_last ? kArrays * 2 : kArrays); ++id)
        writes.push_back(array(id));
      check((*opened)->commit(writes, true).has_value(), "it takes what it is given");
      if (!is_last) continue;
      for (std::size_t i = 0; i < kFiles.size(); ++i) parts_[i] = whole(file + kFiles[i]);
    }
    for (const char* part : kFiles) fs::remove(file + part);
  }
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;
  ~Model() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  const std::string& folder() const { return folder_; }
  std::array<std::string, 3> parts() const { return parts_; }

 private:
  std::string folder_;
  std::array<std::string, 3> parts_;
};

/// Each change: which file, where, how much, and whether the page gets the sum that it then has to have.
void change(std::array<std::string, 3>& parts, Input& input) {
  while (!input.rest().empty()) {
    const std::size_t what = input.number();
    std::string& part = parts[what % parts.size()];
    const std::size_t place = (input.number() * 256 + input.number()) * 256 + input.number();
    const std::size_t at = part.empty() ? 0 : place % part.size();
    if (what / 4 % 16 == 15) part.resize(at);
    for (std::size_t count = input.number() % 16 + 1; count > 0 && !input.rest().empty(); --count) {
      const char byte = static_cast<char>(input.number());
      if (at + count < part.size()) part[at + count] = byte;
    }
    if (what / 64 % 2 == 0 || what % parts.size() != 0) continue;
    const std::uint64_t number = at / store::kPageSize + 1;
    if (number * store::kPageSize > part.size()) continue;
    std::string page = part.substr((number - 1) * store::kPageSize, store::kPageSize);
    store::put_sum(page, number);
    part.replace((number - 1) * store::kPageSize, store::kPageSize, page);
  }
}

bool needs_items(const std::string& recipe) {
  return recipe.starts_with("recipe");
}

void read_all(store::Store& store) {
  store.begin();
  std::vector<std::uint64_t> ids;
  {
    const LiveArrays next = store.live_arrays();
    while (const LiveArray* live = next()) ids.push_back(live->id.value);
  }
  for (const std::uint64_t id : ids) {
    const auto recipe = store.history().recipe(ArrayId{id});
    if (recipe) store.history().environment(recipe->environment);
    store.history().item({ArrayId{id}, 1});
  }
}

}  // namespace
}  // namespace hpcbatch::fuzz

HPCBATCH_HARNESS(store, bytes) {
  static const Model model;
  auto parts = model.parts();
  Input input(bytes);
  change(parts, input);
  const std::string file = model.folder() + "/store.db", into = model.folder() + "/saved.db";
  for (std::size_t i = 0; i < kFiles.size(); ++i) {
    std::ofstream(file + kFiles[i], std::ios::binary) << parts[i];
    fs::permissions(file + kFiles[i], fs::perms::owner_read | fs::perms::owner_write);
  }
  const auto looked = store::look_through(file, model.folder());
  // Of a table whose first page is bad the holes are looked for in minutes, under sanitizers: the
  // tests of salvage do so.
  if (looked && looked->is_good()) {
    const auto saved = store::salvage(file, into, needs_items);
    check(saved.has_value() && saved->is_good(), "a good store is saved as one");
    try {
      auto opened = store::Store::open(into);
      check(opened.has_value(), "what was saved can be opened");
      read_all(**opened);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
      check(false, "what was saved can be read");
    }
  }
  for (const char* part : kFiles) {
    fs::remove(file + part);
    fs::remove(into + part);
  }
}
