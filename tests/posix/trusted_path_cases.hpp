// The hostile and honest paths of trusted_paths.json, laid out for who is to judge them.  Only root can.
#pragma once

#include "posix/trusted_path.hpp"

#include <gtest/gtest.h>
#include <boost/json/parse.hpp>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

namespace hpcbatch {

namespace json = boost::json;

class TrustedPathCases {
 public:
  explicit TrustedPathCases(const std::string& file) {
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    table_ = json::parse(text.str()).as_object();
  }

  const json::array& cases() const { return table_.at("cases").as_array(); }
  uid_t user(const std::string& name) const {
    return table_.at("users").at(name).at("uid").to_number<uid_t>();
  }
  gid_t group(const std::string& name) const {
    const auto& groups = table_.at("groups").as_object();
    return groups.contains(name) ? groups.at(name).at("gid").to_number<gid_t>()
                                 : static_cast<gid_t>(std::stoul(name));
  }

  void add_accounts(PathFacts& facts) const {
    for (const auto& [name, user] : table_.at("users").as_object()) {
      facts.accounts[user.at("uid").to_number<uid_t>()] = {
          name, group(std::string(user.at("primary").as_string()))};
    }
    for (const auto& [name, group] : table_.at("groups").as_object()) {
      Group& known = facts.groups[group.at("gid").to_number<gid_t>()];
      known.name = name;
      for (const auto& member : group.at("members").as_array())
        known.members.emplace_back(member.as_string());
    }
  }

  void lay_out(const json::value& one, const std::string& base) const {
    for (const auto& step : one.at("setup").as_array()) {
      const auto word = [&](std::size_t at) { return std::string(step.at(at).as_string()); };
      const std::string path = base + "/" + word(1);
      if (word(0) == "acl") {
        set_acl(path, word(2));
      } else if (word(0) == "link") {
        const std::string target = word(2).starts_with('/') ? base + word(2) : word(2);
        ASSERT_EQ(::symlink(target.c_str(), path.c_str()), 0) << path;
        ASSERT_EQ(::lchown(path.c_str(), user(word(3)), 0), 0) << path;
      } else {
        make(word(0), path);
        ASSERT_EQ(::chown(path.c_str(), user(word(2)), group(word(3))), 0) << path;
        ASSERT_EQ(::chmod(path.c_str(), static_cast<mode_t>(std::stoul(word(4), nullptr, 8))), 0);
      }
    }
  }

  /// Whether the guard has said of the case what it must.
  static void expect(const json::value& one, const std::string& base,
                     const std::optional<Distrust>& found) {
    const std::string_view verdict = one.at("verdict").as_string();
    const std::string_view said = !found ? "trusted" : found->is_refusal ? "refused" : "said";
    EXPECT_EQ(said, verdict) << one.at("name") << ": " << (found ? found->text : "");
    if (!found) return;
    EXPECT_EQ(found->path, base + "/" + std::string(one.at("names").as_string()))
        << one.at("name") << ": " << found->text;
    EXPECT_NE(found->text.find(found->path), std::string::npos) << found->text;
  }

  static Wanted wanted(const json::value& one) {
    return one.at("wants").as_string() == "file" ? Wanted::File : Wanted::Folder;
  }
  static std::string trust_group(const json::value& one) {
    const auto* const name = one.as_object().if_contains("trust_group");
    return name ? std::string(name->as_string()) : "";
  }

 private:
  static void make(const std::string& kind, const std::string& path) {
    if (kind == "dir")
      ASSERT_EQ(::mkdir(path.c_str(), 0700), 0) << path;
    else if (kind == "pipe")
      ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0) << path;
    else
      std::ofstream(path) << "text\n";
  }

  void set_acl(const std::string& path, const std::string& entries) const {
    struct Entry {
      std::uint16_t tag;
      std::uint16_t rights;
      std::uint32_t id;
    };
    std::string bytes("\2\0\0\0", 4);
    std::istringstream rest(entries);
    for (std::string entry; std::getline(rest, entry, ',');) {
      const auto first = entry.find(':');
      const auto second = entry.find(':', first + 1);
      const std::string kind = entry.substr(0, first);
      const std::string name = entry.substr(first + 1, second - first - 1);
      const std::string rights = entry.substr(second + 1);
      Entry made{.tag = 32, .rights = 0, .id = ~0U};
      if (kind == "user") made.tag = name.empty() ? 1 : 2;
      if (kind == "group") made.tag = name.empty() ? 4 : 8;
      if (kind == "mask") made.tag = 16;
      if (!name.empty()) made.id = kind == "user" ? user(name) : group(name);
      made.rights = static_cast<std::uint16_t>(
          (rights[0] == 'r' ? 4 : 0) | (rights[1] == 'w' ? 2 : 0) | (rights[2] == 'x' ? 1 : 0));
      bytes.append(reinterpret_cast<const char*>(&made), sizeof made);
    }
    ASSERT_EQ(::setxattr(path.c_str(), "system.posix_acl_access", bytes.data(), bytes.size(), 0), 0)
        << path << ": " << std::strerror(errno);
  }

  json::object table_;
};

/// A folder of root's in a place that is trusted itself.
class TrustedBase {
 public:
  TrustedBase() {
    std::string made =
        (std::filesystem::canonical(std::filesystem::temp_directory_path()) / "trusted XXXXXX")
            .string();
    path_ = ::mkdtemp(made.data());
    ::chmod(path_.c_str(), 0755);
  }
  TrustedBase(const TrustedBase&) = delete;
  TrustedBase& operator=(const TrustedBase&) = delete;
  ~TrustedBase() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace hpcbatch
