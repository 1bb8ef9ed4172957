// The door for pilots outlives a lack of descriptors.
#include "links/link_server.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

namespace hpcbatch {
namespace {

double cpu_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

TEST(LinkServer, WaitsWhereThereAreNoDescriptorsLeft) {
  std::string folder = testing::TempDir() + "/hpcbatch_XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  asio::io_context loop;
  LinkServer server(
      loop, [](const auto&) { return std::nullopt; }, [](const auto&, const auto&) {},
      [](const auto&) {});
  ASSERT_TRUE(server.listen_unix(folder + "/link"));
  const int client = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next = ::dup(0);
  ::close(next);
  const rlimit none{static_cast<rlim_t>(next), before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  (folder + "/link").copy(address.sun_path, sizeof address.sun_path - 1);
  EXPECT_EQ(::connect(client, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  const double begin = cpu_seconds();
  loop.run_for(std::chrono::milliseconds{400});
  const double used = cpu_seconds() - begin;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_LT(used, 0.2) << "it turned in circles";
  ::close(client);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace hpcbatch
