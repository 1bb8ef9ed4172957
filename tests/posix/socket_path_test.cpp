// Sockets at long paths are bound and reached.
#include "posix/socket_path.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include <sys/socket.h>
#include <sys/un.h>

namespace hpcbatch {
namespace {

TEST(SocketPath, AShortOneStaysAsItIs) {
  const SocketPath path = socket_path("/run/a/socket");
  EXPECT_EQ(path.text, "/run/a/socket");
  EXPECT_FALSE(path.folder);
  EXPECT_EQ(socket_path(std::string(107, 'x')).text.size(), 107U);
}

TEST(SocketPath, ALongOneIsReachedThroughItsFolder) {
  std::string made = testing::TempDir() + "/hpcbatch_XXXXXX";
  const std::string top = ::mkdtemp(made.data());
  const std::string folder = top + "/" + std::string(150, 'd');
  std::filesystem::create_directory(folder);
  {
    const SocketPath path = socket_path(folder + "/socket");
    ASSERT_EQ(path.error, 0);
    ASSERT_LT(path.text.size(), sizeof sockaddr_un{}.sun_path);
    const sockaddr_un address = address_of(path);
    const Fd listener(::socket(AF_UNIX, SOCK_STREAM, 0)), client(::socket(AF_UNIX, SOCK_STREAM, 0));
    const auto* plain = reinterpret_cast<const sockaddr*>(&address);
    ASSERT_EQ(::bind(listener.get(), plain, sizeof address), 0);
    ASSERT_EQ(::listen(listener.get(), 1), 0);
    EXPECT_EQ(::connect(client.get(), plain, sizeof address), 0);
  }
  EXPECT_TRUE(std::filesystem::exists(folder + "/socket"));
  EXPECT_EQ(socket_path(folder + "/" + std::string(120, 's')).error, ENAMETOOLONG);
  EXPECT_EQ(socket_path(top + "/absent/" + std::string(120, 's')).error, ENOENT);
  EXPECT_EQ(socket_path(std::string(120, 's')).error, ENAMETOOLONG);
  std::filesystem::remove_all(top);
}

}  // namespace
}  // namespace hpcbatch
