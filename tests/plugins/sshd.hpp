// A real sshd of a test's own on 127.0.0.1, with its own keys, home directory and log, and nothing
// of this machine's; it ends with the test.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hpcbatch {

inline std::string text_of_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Looks until it is so, or for 20 seconds.
inline bool comes_true(const std::function<bool()>& is_so) {
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!is_so()) {
    if (std::chrono::steady_clock::now() > patience) return false;
    ::usleep(20'000);
  }
  return true;
}

class Sshd {
 public:
  explicit Sshd(std::string more_config = "") : more_config_(std::move(more_config)) {
    std::string pattern = testing::TempDir() + "sshd-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no folder for sshd");
    folder_ = pattern;
    std::filesystem::create_directory(home());
    make_key(path("host_key"));
    make_key(path("user_key"));
    std::filesystem::copy(path("user_key.pub"), path("authorized_keys"));
    port_ = free_port();
    know_host();
    start();
  }
  Sshd(const Sshd&) = delete;
  Sshd& operator=(const Sshd&) = delete;
  ~Sshd() {
    stop();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  void start() {
    // As root it wants this directory, which a service would have made.
    if (::geteuid() == 0) ::mkdir("/run/sshd", 0755);
    // Of each setting the first counts.
    std::ofstream(path("config"))
        << more_config_ << "\nListenAddress 127.0.0.1\nPort " << port_ << "\nHostKey "
        << path("host_key") << "\nAuthorizedKeysFile " << path("authorized_keys")
        << "\nPidFile none\nUsePAM no\nStrictModes no\nMaxSessions 4\nPasswordAuthentication no\n"
           "KbdInteractiveAuthentication no\nPermitRootLogin yes\nSetEnv HOME="
        << home() << "\n";
    process_ = ::fork();
    if (process_ == 0) {
      ::execl("/usr/sbin/sshd", "/usr/sbin/sshd", "-D", "-f", path("config").c_str(), "-E",
              path("log").c_str(), nullptr);
      ::_exit(127);
    }
    if (!comes_true([&] { return answers(); }) || !comes_true([&] { return connections() == 0; }))
      throw std::runtime_error("sshd does not answer: " + text_of_file(path("log")));
  }

  /// With all its connections.
  void stop() {
    if (process_ <= 0) return;
    const auto connections = children();
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    process_ = -1;
    for (const pid_t connection : connections) {
      ::kill(connection, SIGKILL);
      ::kill(connection, SIGCONT);
    }
  }
  void signal_connections(int signal) const {
    for (const pid_t connection : children()) ::kill(connection, signal);
  }
  std::size_t connections() const { return children().size(); }

  void new_host_key() {
    std::filesystem::remove(path("host_key"));
    std::filesystem::remove(path("host_key.pub"));
    make_key(path("host_key"));
  }
  void know_host(int port = 0) const {
    std::ofstream(path("known_hosts"), std::ios::app)
        << "[127.0.0.1]:" << (port == 0 ? port_ : port) << " "
        << text_of_file(path("host_key.pub"));
  }
  std::string fingerprint() const {
    run("ssh-keygen -lf " + path("host_key.pub") + " > " + path("fingerprint"));
    std::ifstream in(path("fingerprint"));
    std::string size;
    std::string hash;
    in >> size >> hash;
    return hash;
  }

  int port() const { return port_; }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  std::string home() const { return path("home"); }
  std::string log() const { return text_of_file(path("log")); }

  static void run(const std::string& command) {
    if (std::system(command.c_str()) != 0) throw std::runtime_error("failed: " + command);
  }
  static void make_key(const std::string& file, const std::string& passphrase = "") {
    run("ssh-keygen -q -t ed25519 -N '" + passphrase + "' -f " + file);
  }
  static int free_port() {
    const int probe = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    (void)::bind(probe, reinterpret_cast<sockaddr*>(&address), size);
    ::getsockname(probe, reinterpret_cast<sockaddr*>(&address), &size);
    ::close(probe);
    return ntohs(address.sin_port);
  }
  static int connect_to(int port) {
    const int to = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(to, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return to;
    ::close(to);
    return -1;
  }

 private:
  bool answers() const {
    const int probe = connect_to(port_);
    if (probe >= 0) ::close(probe);
    return probe >= 0;
  }
  /// One for each connection.
  std::vector<pid_t> children() const {
    const std::string process = std::to_string(process_);
    std::ifstream in("/proc/" + process + "/task/" + process + "/children");
    return {std::istream_iterator<pid_t>(in), {}};
  }

  std::string more_config_;
  std::string folder_;
  int port_{0};
  pid_t process_{-1};
};

}  // namespace hpcbatch
