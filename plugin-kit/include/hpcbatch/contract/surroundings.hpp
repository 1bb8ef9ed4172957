// What no plugin may change of the process that it is loaded into: directory, signals, threads,
// environment.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>
#include <csignal>

namespace hpcbatch::contract {

/// Taken before a test and compared after it.
struct Surroundings {
  std::filesystem::path directory;
  std::array<bool, 65> blocked{};
  std::array<bool, 65> handled{};
  std::ptrdiff_t threads{0};
  std::ptrdiff_t descriptors{0};
  std::vector<std::string> environment;

  static Surroundings now() {
    // The thread sanitizer starts a thread of its own beside the first one.
    pid_t first = 0;
    std::thread([&first] { first = ::gettid(); }).join();
    wait_until_unlisted(first);
    Surroundings s;
    s.directory = std::filesystem::current_path();
    sigset_t mask;
    ::pthread_sigmask(SIG_BLOCK, nullptr, &mask);
    for (int signal = 1; signal < 65; ++signal) {
      struct sigaction action {};
      const auto at = static_cast<std::size_t>(signal);
      s.blocked[at] = ::sigismember(&mask, signal) == 1;
      s.handled[at] = ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler != SIG_DFL;
    }
    s.threads = entries("/proc/self/task");
    s.descriptors = entries("/proc/self/fd");
    for (char** variable = ::environ; *variable != nullptr; ++variable)
      s.environment.emplace_back(*variable);
    return s;
  }

  void expect_unchanged() const {
    Surroundings after = now();
    // A thread that was joined is listed a moment longer.
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (after.threads > threads && std::chrono::steady_clock::now() < patience) after = now();
    EXPECT_EQ(directory, after.directory) << "the plugin changed the working directory";
    EXPECT_EQ(blocked, after.blocked) << "the plugin changed the signal mask";
    EXPECT_EQ(handled, after.handled) << "the plugin changed what signals do";
    EXPECT_EQ(threads, after.threads) << "the plugin started threads";
    EXPECT_EQ(descriptors, after.descriptors) << "the plugin left descriptors open";
    EXPECT_EQ(environment, after.environment) << "the plugin changed the environment";
  }

 private:
  /// A thread that was joined is listed a moment longer.
  static void wait_until_unlisted(pid_t thread) {
    const auto listed = "/proc/self/task/" + std::to_string(thread);
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (std::filesystem::exists(listed) && std::chrono::steady_clock::now() < patience)
      std::this_thread::yield();
  }

  static std::ptrdiff_t entries(const char* directory) {
    return std::distance(std::filesystem::directory_iterator(directory), {});
  }
};

}  // namespace hpcbatch::contract
