#include "cli/verbs/doctor.hpp"

#include "cli/client/engine_client.hpp"
#include "cli/parse/command.hpp"
#include "cli/process/process.hpp"
#include "cli/show/listings.hpp"
#include "cli/show/table.hpp"
#include "cli/show/terminal.hpp"
#include "cli/show/values.hpp"
#include "cli/verbs/verbs.hpp"
#include "documents/state_paths.hpp"
#include "model/quantities.hpp"
#include "posix/files.hpp"
#include "posix/programs.hpp"

#include <hpcbatch/text.hpp>

#include <boost/json/array.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <string_view>

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace hpcbatch {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kOthersBits = 0077;
constexpr std::uint64_t kLeastFree = std::uint64_t{100} << 20;
// A store of a busy year, and the output of a task.
constexpr std::uint64_t kLeastFileSize = std::uint64_t{1} << 30;
constexpr std::streamoff kEndOfLog = 65'536;

bool exists(const std::string& path, struct stat& what) {
  return ::stat(path.c_str(), &what) == 0;
}

/// The folder itself, or the nearest one above that there is.
std::string nearest_existing(std::string path) {
  struct stat what {};
  while (path.size() > 1 && !exists(path, what)) path = fs::path(path).parent_path().string();
  return path;
}

Check permissions_of(const std::string& name, const std::string& path, const struct stat& what,
                     const char* mode) {
  if (what.st_uid != ::geteuid())
    return {name, false, path + " belongs to another user; name one of your own in HPCBATCH_HOME"};
  if ((what.st_mode & kOthersBits) != 0)
    return {name, false, path + " is open to others; do: chmod " + mode + " " + path};
  return {name, true, path};
}

std::string file_system_name(long type) {
  // Of statfs(2) and of the file systems that clusters have.
  struct Known {
    unsigned long type;
    const char* name;
  };
  static constexpr std::array<Known, 12> kKnown{{{0x6969, "NFS"},
                                                 {0x0BD00BD0, "Lustre"},
                                                 {0x47504653, "GPFS"},
                                                 {0x19830326, "BeeGFS"},
                                                 {0xFF534D42, "CIFS"},
                                                 {0xFE534D42, "SMB"},
                                                 {0x65735546, "FUSE"},
                                                 {0x00C36400, "CephFS"},
                                                 {0x01021994, "tmpfs"},
                                                 {0xEF53, "ext4"},
                                                 {0x58465342, "XFS"},
                                                 {0x794C7630, "overlayfs"}}};
  for (const Known& known : kKnown) {
    if (known.type == static_cast<unsigned long>(type)) return known.name;
  }
  return "a local or unknown file system";
}

std::size_t count_plugins(const fs::path& folder) {
  std::size_t count = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    count += entry.path().extension() == ".so" ? 1 : 0;
  return count;
}

/// What a run of this program wrote on its standard error, and how it ended.
std::pair<int, std::string> run_self(const std::vector<std::string>& words) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {-1, std::strerror(errno)};
  const Fd read_end(ends[0]);
  Fd write_end(ends[1]);
  const Fd nothing(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  pid_t process = 0;
  const int error = spawn_program(
      words, {.program = "/proc/self/exe", .output = nothing.get(), .error = write_end.get()},
      process);
  if (error != 0) return {-1, std::strerror(error)};
  write_end.reset();
  std::string text;
  (void)read_all(read_end.get(), text);
  const int code = shell_code_of(wait_for_end(process));
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return {code, text};
}

}  // namespace

Check check_home(const Places& places) {
  struct stat what {};
  if (exists(places.home, what)) {
    if (!S_ISDIR(what.st_mode))
      return {"state directory", false, places.home + " is no directory; move it away"};
    return permissions_of("state directory", places.home, what, "700");
  }
  const std::string above = nearest_existing(places.home);
  if (::access(above.c_str(), W_OK) != 0) {
    return {"state directory", false,
            places.home + " cannot be made in " + above + "; name another in HPCBATCH_HOME"};
  }
  return {"state directory", true, places.home + " (made when the engine first starts)"};
}

Check check_socket(const Places& places) {
  struct stat what {};
  if (!exists(places.socket, what))
    return {"socket", true, places.socket + " (made when the engine starts)"};
  if (!S_ISSOCK(what.st_mode))
    return {"socket", false, places.socket + " is no socket; move it away"};
  return permissions_of("socket", places.socket, what, "600");
}

Check check_file_system(const Places& places) {
  const std::string folder = nearest_existing(places.home);
  struct statfs system {};
  struct statvfs room {};
  if (::statfs(folder.c_str(), &system) != 0 || ::statvfs(folder.c_str(), &room) != 0) {
    return {"file system", false, "cannot look at " + folder + ": " + std::strerror(errno)};
  }
  const std::string name = file_system_name(static_cast<long>(system.f_type));
  const std::uint64_t free = std::uint64_t{room.f_bavail} * room.f_frsize;
  if (free < kLeastFree) {
    return {"file system", false,
            folder + " has only " + show_size(free) + " left; make room or set HPCBATCH_HOME"};
  }
  std::string text = name + ", " + show_size(free) + " free";
  if (name == "tmpfs") text += "; what is kept there does not survive a reboot";
  if (name == "NFS") text += "; the engine of all hosts that share it runs on one of them";
  return {"file system", true, text};
}

Check check_file_size(pid_t process) {
  const auto limit = file_size_limit(process);
  if (!limit) return {"file size", true, "files may be of any size"};
  const std::string text = "the engine may write no file larger than " + show_size(*limit) +
                           " (ulimit -f), its store and its log among them";
  if (*limit >= kLeastFileSize) return {"file size", true, text};
  return {"file size", false, text + "; start it where that limit is higher"};
}

Check check_death(const Places& places) {
  constexpr std::string_view kFault = "hpcbatch: this process ends by SIG";
  const std::string listens = std::string(kListensInLog);
  const std::string as_text = " info " + listens, as_json = R"("info","message":")" + listens;
  std::ifstream log(places.home + "/engine.log", std::ios::binary);
  log.seekg(0, std::ios::end);
  log.seekg(-std::min<std::streamoff>(log.tellg(), kEndOfLog), std::ios::end);
  std::string fault;
  for (std::string line; std::getline(log, line);) {
    if (line.find(as_text) != line.npos || line.find(as_json) != line.npos) fault.clear();
    if (line.starts_with(kFault)) fault = line.substr(std::string_view("hpcbatch: ").size());
  }
  return {"engine", false,
          "none runs, and the last one died without being stopped; " +
              (fault.empty() ? "" : "its log says: " + one_line(fault) + "; ") +
              "the next command starts one, and queued work goes on. See " + places.home +
              "/engine.log"};
}

Check check_configuration(const Places& places) {
  const auto [exit_code, text] = run_self({"hpcbatch", "engine", "run", "--check-config"});
  if (exit_code != kExitDone) {
    return {"configuration", false,
            text.empty() ? "its check ended with exit code " + std::to_string(exit_code) : text};
  }
  struct stat what {};
  // What the guard of trusted paths says and does not refuse.
  const std::string said = text.empty() ? text : "; " + text;
  if (exists(places.configuration, what))
    return {"configuration", true, places.configuration + said};
  return {"configuration", true,
          "none, which is fine: " + places.configuration + " would be read" + said};
}

Check check_plugins(const std::string& program) {
  const fs::path prefix = fs::path(program).parent_path().parent_path();
  const auto* const own =
      std::find_if(kOwnPlugins.begin(), kOwnPlugins.end(), [&prefix](std::string_view name) {
        std::error_code error;
        return fs::exists(prefix / name, error);
      });
  const fs::path folder = prefix / (own == kOwnPlugins.end() ? kOwnPlugins.front() : *own);
  std::string text;
  bool is_good = true;
  for (const std::string kind : {"scheduler", "transport", "tool"}) {
    const std::size_t count = count_plugins(folder / (kind + "s"));
    is_good = is_good && count > 0;
    text += (text.empty() ? "" : ", ") + show_count(count, kind);
  }
  text += " in " + folder.string();
  if (!is_good) text += "; build or install hpcbatch completely";
  return {"plugins", is_good, text};
}

Check check_pilot(const std::string& program) {
  const std::string pilot = (fs::path(program).parent_path() / "hpcbatch-pilot").string();
  if (::access(pilot.c_str(), X_OK) == 0) return {"pilot", true, pilot};
  return {
      "pilot", false,
      pilot + " cannot be run: " + std::strerror(errno) + "; build or install hpcbatch completely"};
}

namespace {

bool is_ours(const fs::path& file, const fs::path& program) {
  static constexpr std::array<std::string_view, 4> kFolders{"schedulers", "transports", "tools",
                                                            "estimators"};
  const std::string folder = file.parent_path().filename();
  return file == program || (file.extension() == ".so" &&
                             std::find(kFolders.begin(), kFolders.end(), folder) != kFolders.end());
}

}  // namespace

Check check_loaded(pid_t process) {
  constexpr std::string_view kGone = " (deleted)";
  const fs::path of_process = "/proc/" + std::to_string(process);
  std::error_code error;
  const fs::path program = fs::read_symlink(of_process / "exe", error);
  std::ifstream maps(of_process / "maps");
  std::set<std::string> gone;
  for (std::string line; std::getline(maps, line);) {
    const std::size_t at = line.find('/');
    if (at == std::string::npos || !line.ends_with(kGone)) continue;
    const std::string path = line.substr(at, line.size() - at - kGone.size());
    // The link to a program that is gone says so as well.
    if (is_ours(path, program) || path + std::string(kGone) == program) gone.insert(path);
  }
  if (gone.empty()) return {"loaded", true, "the engine runs what is installed"};
  return {"loaded", false,
          "the engine still runs what was there before " + joined(gone, ", ") +
              (gone.size() == 1 ? " was" : " were") +
              " replaced or removed; start it anew: hpcbatch engine restart"};
}

std::string own_program() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).string();
}

// `doctor`: looks at this installation and says of each part whether it is good, and if not, what
// to do.

namespace {

namespace json = boost::json;

constexpr std::chrono::minutes kSiteTime{2};

Check check_of_site(EngineClient& client, const std::string& name) {
  const json::object checked =
      client.post("/v1/sites/" + encode_part(name) + "/check", {}, kSiteTime);
  std::string bad;
  for (const json::object& part : objects_at(checked, "checks")) {
    if (flag_at(part, "ok")) continue;
    bad += (bad.empty() ? "" : "; ") + text_at(part, "check") + ": " + text_at(part, "text");
  }
  const bool is_good = flag_at(checked, "ok");
  return {"site " + name, is_good, is_good ? "can be used" : bad.empty() ? "cannot be used" : bad};
}

void add_sites(std::vector<Check>& checks, EngineClient& client) {
  const json::object answer = client.get("/v1/sites");
  for (const json::object& site : objects_at(answer, "sites")) {
    const std::string name = text_at(site, "name");
    // A check would wait behind it.
    const std::string hangs = text_at(site, "waits_for");
    try {
      checks.push_back(hangs.empty() ? check_of_site(client, name)
                                     : Check{"site " + name, false, hangs});
    } catch (const CommandError& error) {
      checks.push_back({"site " + name, false, error.what()});
    }
  }
}

void check_engine(std::vector<Check>& checks, const Session& session) {
  EngineClient client = session.client();
  const Answer connected = connect_to_running(client, session.places, session.interrupt);
  if (connected.outcome == Exchange::NoEngine) {
    if (const auto text = engine_out_of_reach(session.places)) {
      checks.push_back({"engine", false, *text});
      return;
    }
    checks.push_back(check_file_size(0));
    if (engine_that_died(session.places.home)) {
      checks.push_back(check_death(session.places));
      return;
    }
    checks.push_back({"engine", true,
                      "none runs; `run` and `submit` start one. Sites are checked when one runs"});
    return;
  }
  try {
    client.leave_trouble_out();  // it has a line of its own
    const json::object engine =
        object_of(client.http().request("GET", "/v1/engine", {}, EngineClient::kAnswerTime));
    checks.push_back({"engine", true, "runs as process " + std::to_string(client.http().peer())});
    checks.push_back(check_loaded(client.http().peer()));
    checks.push_back(check_file_size(client.http().peer()));
    const bool has_trouble = text_at(engine, "state") == "trouble";
    checks.push_back(
        {"store", !has_trouble, has_trouble ? text_at(engine, "message") : "can be written"});
    add_sites(checks, client);
  } catch (const CommandError& error) {
    checks.push_back({"engine", false, error.what()});
  }
}

}  // namespace

int perform(const DoctorCommand& command, const Session& session) {
  const std::string program = own_program();
  std::vector<Check> checks;
  {
    const SlowNote note("the file system of " + session.places.home + " or of " +
                        session.places.socket);
    checks = {check_home(session.places), check_socket(session.places),
              check_file_system(session.places)};
  }
  {
    const SlowNote note("the check of the configuration " + session.places.configuration +
                        " and of the plugins that it names");
    checks.push_back(check_configuration(session.places));
  }
  {
    const SlowNote note("the file system of " + program);
    checks.push_back(check_plugins(program));
    checks.push_back(check_pilot(program));
  }
  check_engine(checks, session);

  json::array rows;
  for (const Check& check : checks) {
    rows.push_back({{"check", check.name}, {"ok", check.is_good}, {"text", check.text}});
  }
  if (command.json) {
    for (const json::value& row : rows) print_json(row);
  } else {
    print(check_table(rows).text(columns_of_output(), Table::Last::Wrapped));
  }
  const bool all_good =
      std::all_of(checks.begin(), checks.end(), [](const Check& check) { return check.is_good; });
  return all_good ? kExitDone : kExitTaskFailed;
}

}  // namespace hpcbatch
