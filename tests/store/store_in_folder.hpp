// A store in a folder of its own, and short ways to fill it.
#pragma once

#include "store/store.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>

#include <stdlib.h>

namespace hpcbatch::store {

class StoreInFolder : public testing::Test {
 protected:
  StoreInFolder() {
    std::string path = testing::TempDir() + "/hpcbatch-store-XXXXXX";
    folder = ::mkdtemp(path.data());
    reopen();
  }
  ~StoreInFolder() override {
    store.reset();
    std::filesystem::remove_all(folder);
  }
  void reopen() {
    store.reset();
    auto opened = Store::open(folder + "/store.db");
    ASSERT_TRUE(opened) << opened.error().text;
    store = std::move(*opened);
  }
  void save(std::vector<Write> writes, bool durable = true) {
    const auto done = store->commit(writes, durable);
    ASSERT_TRUE(done) << done.error().text;
  }
  std::vector<LiveArray> live_arrays() {
    std::vector<LiveArray> all;
    const LiveArrays next = store->live_arrays();
    while (const LiveArray* live = next()) all.push_back(*live);
    return all;
  }
  static Write array(std::uint64_t id, IndexSet indices, std::vector<Dependency> after = {},
                     const std::string& key = "") {
    SaveArrays save{.client = "tester", .key = key, .content = 7, .first = ArrayId{id}};
    NewArray& array = save.arrays.emplace_back();
    array.indices = std::move(indices);
    array.needs.amounts.set(kCpus, Amount::of(1));
    array.after = std::move(after);
    save.submitted = from_microseconds(1000);
    Recipe recipe;
    recipe.bytes = "recipe " + std::to_string(id);
    recipe.environment = std::make_shared<const std::string>("shared surroundings");
    return {save, {recipe}};
  }
  static AttemptId attempt(std::uint64_t array, std::uint32_t index, std::uint32_t number = 1,
                           std::uint64_t epoch = 5) {
    return {{ArrayId{array}, index}, number, epoch};
  }
  static PilotId pilot() { return {AllocationId{"habcde123456789"}, 2}; }
  static Write result(std::uint64_t id, std::uint32_t index, Failure failure) {
    SaveResult save{attempt(id, index), pilot(), "node7", {}};
    save.outcome.failure = failure;
    save.outcome.ended = from_microseconds(5000);
    return {save, {}};
  }

  std::string folder;
  std::unique_ptr<Store> store;
};

}  // namespace hpcbatch::store
