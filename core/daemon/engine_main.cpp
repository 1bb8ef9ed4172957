#include "daemon/programs.hpp"

#include "api/api.hpp"
#include "api/dropbox_ports.hpp"
#include "cli/process/process.hpp"
#include "daemon/reach.hpp"
#include "daemon/trusted_places.hpp"
#include "documents/configuration.hpp"
#include "documents/state_paths.hpp"
#include "documents/texts.hpp"
#include "loop/descriptors.hpp"
#include "model/quantities.hpp"
#include "notify/notices.hpp"
#include "plugin_host/guarded.hpp"
#include "plugin_host/plugin_host.hpp"
#include "posix/files.hpp"
#include "posix/programs.hpp"
#include "runtime/runtime.hpp"
#include "sites/machine.hpp"
#include "sites/workspace_memory.hpp"
#include "store/owner.hpp"
#include "tool_host/apart_tool.hpp"

#include <hpcbatch/text.hpp>

#include <fmt/format.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/spdlog.h>
#include <boost/asio/signal_set.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/string.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <string>

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hpcbatch {
namespace {

using namespace std::chrono_literals;

constexpr auto kIdleEnd = 30min;
constexpr auto kLook = 60s;

/// The engine does not start: why, and with which exit code.
struct NoStart {
  int code;
  std::string text;
};

void need_own_directory(const std::string& path) {
  if (const auto why = own_directory(path)) throw NoStart{1, *why};
}

Configuration configuration_of(const EngineOptions& options, const Places& places,
                               std::vector<std::string>& said) {
  const std::string file = options.config.value_or(places.configuration);
  const bool named = options.config || places.configuration_is_named;
  // A link that leads nowhere, or a folder that we may not look into, is somebody's configuration.
  std::error_code error;
  const auto there = std::filesystem::symlink_status(file, error);
  if (!named && there.type() == std::filesystem::file_type::not_found) return {};
  try {
    if (const auto why = untrusted_configuration(file, said)) throw NoStart{2, *why};
    return read_configuration(file);
  } catch (const DocumentError& e) {
    throw NoStart{2, e.what()};
  }
}

/// The sites to use: those of the configuration, or this machine.
std::vector<Site> sites_of(const Configuration& configuration, const std::string& home) {
  if (configuration.sites.empty()) return {default_site(home)};
  std::vector<Site> sites = configuration.sites;
  for (Site& site : sites) {
    if (site.scheduler == "local") complete_local_site(site, home);
  }
  return sites;
}

/// Loads every plugin that a site names, so that a wrong one is refused with the line that names
/// it.
void check_plugins(const PluginHost& plugins, const Configuration& configuration) {
  for (std::size_t i = 0; i < configuration.sites.size(); ++i) {
    const Site& site = configuration.sites[i];
    const SiteLines& lines = configuration.lines[i];
    const auto at = [&](int line) {
      return fmt::format("{}:{}: site '{}': ", configuration.file, line, site.name);
    };
    if (auto made = plugins.scheduler(site.scheduler, site.scheduler_config); !made) {
      throw NoStart{2, at(lines.scheduler) + made.error().text};
    }
    if (auto made = plugins.transport(site.transport, site.transport_config); !made) {
      throw NoStart{2, at(lines.transport) + made.error().text};
    }
  }
}

/// Tells the client that started us, if one did, and lets it go.
class Starter {
 public:
  explicit Starter(int descriptor) : descriptor_(descriptor) {}
  Starter(const Starter&) = delete;
  Starter& operator=(const Starter&) = delete;
  ~Starter() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  void tell(const std::string& text) {
    if (descriptor_ < 0) return;
    // A client that has gone wants to know nothing.
    (void)!::write(descriptor_, text.data(), text.size());
    ::close(std::exchange(descriptor_, -1));
  }

 private:
  int descriptor_;
};

std::string environment_of(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

tool_host::HostProcess::Options host_options(const Configuration& configuration,
                                             const std::filesystem::path& program) {
  const auto folders = plugin_search_path(configuration.plugin_path,
                                          environment_of("HPCBATCH_PLUGIN_PATH"), program);
  return {.program = (program.parent_path() / "hpcbatch-tool-host").string(),
          .plugin_path = joined(folders, ":", [](const auto& folder) { return folder.string(); })};
}

class EngineProcess {
 public:
  EngineProcess(const EngineOptions& options, Places places, Configuration configuration,
                std::string program, mode_t callers_umask)
      : options_(options),
        callers_umask_(callers_umask),
        places_(std::move(places)),
        configuration_(std::move(configuration)),
        program_(std::move(program)),
        plugins_(plugin_search_path(configuration_.plugin_path,
                                    environment_of("HPCBATCH_PLUGIN_PATH"), program_)),
        tool_host_(
            std::make_shared<tool_host::HostProcess>(host_options(configuration_, program_))),
        tools_(
            tool_directories(configuration_.tool_path,
                             std::filesystem::path(program_).parent_path().string()),
            [this](const std::string& plugin,
                   const std::string& text) -> Result<std::shared_ptr<Tool>> {
              // Ours, which every other tool is made with: it looks at nothing, and answers at once.
              if (plugin != "command")
                return std::shared_ptr<Tool>(
                    std::make_shared<tool_host::ApartTool>(tool_host_, plugin, text));
              auto made = plugins_.tool(plugin, text);
              if (!made) return made.error();
              return std::shared_ptr<Tool>(std::move(*made));
            },
            configuration_.tool_parameters, configuration_.trust_group),
        signals_(loop_),
        look_(loop_) {}

  void check() { check_plugins(plugins_, configuration_); }

  void open(store::OwnerLock& lock) {
    check();
    open_runtime();
    open_api();
    reach_ = std::make_unique<Reach>(loop_, places_, configuration_.trust_group, *server_, lock);
    reach_->begin();
    open_dropboxes();
    take_signals();
  }

  int run() {
    watch();
    loop_.run();
    return failed_ ? 1 : 0;
  }

 private:
  void open_runtime() {
    std::error_code none;
    std::filesystem::remove(ended_file(places_.home), none);
    auto store = store::Store::open(places_.home + "/store.db");
    if (!store) {
      // It lives, whatever became of its lock.
      const bool is_in_use = store.error().kind == Error::Kind::Transient;
      throw NoStart{
          is_in_use ? kEngineAlreadyRuns : 1,
          is_in_use ? "an engine already runs here: " + store.error().text : store.error().text};
    }
    const std::string pilot =
        (std::filesystem::path(program_).parent_path() / "hpcbatch-pilot").string();
    if (::access(pilot.c_str(), X_OK) != 0) {
      throw NoStart{
          1,
          fmt::format("the pilot program {} is not there or cannot be run; install hpcbatch anew",
                      pilot)};
    }
    const std::vector<Site> sites = sites_of(configuration_, places_.home);
    // Elsewhere it is looked at where it lies.
    for (const Site& site : sites) {
      if (site.transport == "shared_fs") make_workspace(site, places_.home);
    }
    runtime_ = std::make_unique<Runtime>(
        loop_, plugins_, Runtime::Options{places_.home, pilot, sites, descriptors_.pilots},
        Runtime::WhenEnding{[this] {
                              if (server_) server_->end();
                            },
                            [this](const std::string& why) { end(why); }});
    if (auto opened = runtime_->open(std::move(*store)); !opened)
      throw NoStart{1, opened.error().text};
  }

  void open_api() {
    const std::string workspace = sites_of(configuration_, places_.home).front().workspace;
    api_ = std::make_unique<Api>(
        *runtime_, tools_,
        EngineFacts{places_.home, [this] { return server_->file().path; }, configuration_.file,
                    runtime_->now(), callers_umask_, configuration_.notify},
        StayOrGo{[this] { ends_when_idle_ = false; }, [this] { return ends_when_idle_; }});
    notices_ = std::make_unique<Notices>(*runtime_);
    notices_->begin();
    dropboxes_ = std::make_unique<DropboxPorts>(*runtime_, *api_, tools_, workspace, places_.home);
    dropbox_routes_ = std::make_unique<DropboxRoutes>(*dropboxes_);
    dropbox_routes_->add_to(api_->routes());
    server_ = std::make_unique<HttpServer>(
        loop_,
        [this](HttpRequest request, const std::shared_ptr<HttpReply>& reply) {
          last_request_ = std::chrono::steady_clock::now();
          api_->handle(std::move(request), reply);
        },
        descriptors_.clients);
    if (auto listening = server_->listen(places_.socket); !listening)
      throw NoStart{1, listening.error().text};
  }

  void open_dropboxes() {
    for (const DropboxSettings& box : configuration_.dropboxes) {
      if (auto started = dropboxes_->start(box); !started)
        throw NoStart{2, fmt::format("{}: {}", configuration_.file, started.error().text)};
    }
    dropboxes_->start_remembered();
  }

  void take_signals() {
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
      // Under nohup, or in the background of a script, whoever started us has decided that it means
      // nothing to us.
      struct sigaction now {};
      if (::sigaction(signal, nullptr, &now) == 0 && now.sa_handler != SIG_IGN)
        signals_.add(signal);
    }
    signals_.async_wait([this](const boost::system::error_code& error, int signal) {
      if (error) return;
      spdlog::info("ends by signal {}; pilots go on", signal);
      runtime_->stop(StopAsked::Mode::Leave);
    });
  }

  /// What is new is ours alone.  What was there keeps its mode: untrusted_places has looked at it.
  static void make_workspace(const Site& site, const std::string& home) {
    constexpr std::array kParts{"", "/allocations", "/logs", "/outbox", "/work", "/bin"};
    const bool is_bare = std::all_of(kParts.begin() + 1, kParts.end(), [&](const char* part) {
      std::error_code unknown;
      return !std::filesystem::exists(site.workspace + part, unknown);
    });
    // One that was used before may only not be mounted: whoever is to put something there finds
    // out.
    if (is_bare &&
        !remembered_file_system(workspace_memory(home, site.name), site.workspace).empty())
      return;
    for (const char* part : kParts) {
      const std::string path = site.workspace + part;
      std::error_code error;
      const bool is_new = std::filesystem::create_directories(path, error);
      if (error) return;
      if (is_new) ::chmod(path.c_str(), 0700);
    }
  }

  /// Once a minute: renews the lock, and ends an engine that a client started and nobody needs any
  /// more.
  void watch() {
    look_.expires_after(kLook);
    look_.async_wait([this](const boost::system::error_code& error) {
      if (error) return;
      reach_->renew_lock(ends_when_idle_);
      const auto idle = std::chrono::steady_clock::now() - last_request_;
      if (ends_when_idle_ && idle >= kIdleEnd && server_->clients() == 0 &&
          runtime_->engine().is_idle() && notices_->is_quiet() && dropboxes_->list().empty()) {
        spdlog::info("ends, because nobody has needed it for 30 minutes");
        runtime_->stop(StopAsked::Mode::Leave);
        return;
      }
      watch();
    });
  }

  /// For whoever waits for a drained engine: somebody else may have ended it before that.
  void note_end() const {
    std::ofstream(ended_file(places_.home))
        << (runtime_->engine().pilots().leases().empty() ? kEndedEmpty : kEndedLeaving) << "\n";
  }

  void end(const std::string& why) {
    if (!why.empty()) {
      spdlog::critical("{}", why);
      failed_ = true;
    }
    note_end();
    // Answers that are on their way get a moment.
    asio::post(loop_, [this] { loop_.stop(); });
  }

  const EngineOptions& options_;
  const DescriptorBudget descriptors_{raise_open_files()};
  mode_t callers_umask_;
  Places places_;
  Configuration configuration_;
  std::string program_;
  PluginHost plugins_;
  std::shared_ptr<tool_host::HostProcess> tool_host_;
  ToolRegistry tools_;
  asio::io_context loop_;
  boost::asio::signal_set signals_;
  asio::steady_timer look_;
  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<Notices> notices_;
  std::unique_ptr<Api> api_;
  std::unique_ptr<DropboxPorts> dropboxes_;
  std::unique_ptr<DropboxRoutes> dropbox_routes_;
  std::unique_ptr<HttpServer> server_;
  std::unique_ptr<Reach> reach_;
  std::chrono::steady_clock::time_point last_request_{std::chrono::steady_clock::now()};
  bool ends_when_idle_{options_.started_by_client};
  bool failed_{false};
};

int code_of_lock(store::NotOwner::Why why) {
  switch (why) {
    case store::NotOwner::Why::Here:
      return kEngineAlreadyRuns;
    case store::NotOwner::Why::Elsewhere:
      return kEngineElsewhere;
    case store::NotOwner::Why::Failed:
      break;
  }
  return 1;
}

/// What is logged holds words of pilots, schedulers and clients: each message is one line that no
/// terminal obeys.
class ShownMessage : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm& /*time*/,
              spdlog::memory_buf_t& out) override {
    const std::string_view text(message.payload.data(), message.payload.size());
    const std::string shown = show_text(text, text.size());
    out.append(shown.data(), shown.data() + shown.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<ShownMessage>();
  }
};

/// The same as a text of JSON.
class JsonMessage : public ShownMessage {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm& time,
              spdlog::memory_buf_t& out) override {
    spdlog::memory_buf_t shown;
    ShownMessage::format(message, time, shown);
    const std::string text =
        boost::json::serialize(boost::json::string(shown.data(), shown.size()));
    out.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<JsonMessage>();
  }
};

void set_log_format(LogFormat which) {
  const bool is_json = which == LogFormat::Json;
  auto format = std::make_unique<spdlog::pattern_formatter>(
      is_json ? spdlog::pattern_time_type::utc : spdlog::pattern_time_type::local);
  if (is_json) {
    format->add_flag<JsonMessage>('*').set_pattern(
        R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l","message":%*})");
  } else {
    format->add_flag<ShownMessage>('*').set_pattern("%Y-%m-%dT%H:%M:%S.%e %l %*");
  }
  spdlog::set_formatter(std::move(format));
}

/// Neither the folder that a client stood in nor what it had open is held as long as an engine lives.
void leave_the_client(int ready_descriptor) {
  close_from(ready_descriptor + 1);
  (void)!::chdir("/");
}

/// Nothing where it is not ours.
std::optional<ProcessFacts> own_process(pid_t pid) {
  struct stat info {};
  if (::stat(("/proc/" + std::to_string(pid)).c_str(), &info) != 0 || info.st_uid != ::geteuid())
    return std::nullopt;
  return facts_of_process(pid);
}

/// The oldest of our ancestors that is the user's and in the session of our parent; 0: none is.
pid_t first_of_session() {
  pid_t first = 0;
  pid_t pid = ::getppid();
  const auto starter = own_process(pid);
  for (auto process = starter; process && process->session == starter->session;
       process = own_process(pid)) {
    first = pid;
    pid = process->parent;
  }
  return first;
}

void take_niceness(pid_t from) {
  errno = 0;
  const int theirs = ::getpriority(PRIO_PROCESS, static_cast<id_t>(from));
  if (errno == 0) (void)::setpriority(PRIO_PROCESS, 0, theirs);
}

void take_cpus(pid_t from) {
  cpu_set_t theirs;
  if (::sched_getaffinity(from, sizeof theirs, &theirs) == 0)
    (void)::sched_setaffinity(0, sizeof theirs, &theirs);
}

/// Who is not root cannot raise a hard limit again.
void take_limit(pid_t from, __rlimit_resource which) {
  rlimit own{};
  rlimit theirs{};
  if (::getrlimit(which, &own) != 0 || ::prlimit(from, which, nullptr, &theirs) != 0) return;
  if (::setrlimit(which, &theirs) == 0) return;
  own.rlim_cur = std::min(theirs.rlim_cur, own.rlim_max);
  (void)::setrlimit(which, &own);
}

}  // namespace

int run_engine(const EngineOptions& options) {
  if (options.limits_of_session) take_limits_of_session();
  if (options.ready_descriptor >= 0) leave_the_client(options.ready_descriptor);
  Starter starter(options.ready_descriptor);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on files is an error of writing
  name_crashes();
  // For our own files; tasks get that of whoever submits them.
  const mode_t callers_umask = ::umask(077);
  // Keys are in our memory: no core file, no debugger of the same user.
  ::prctl(PR_SET_DUMPABLE, 0);
  set_log_format(LogFormat::Text);
  spdlog::flush_on(spdlog::level::info);
  try {
    auto places = find_places(own_environment());
    if (!places) throw NoStart{2, places.error().text};
    std::vector<std::string> said;
    Configuration configuration = configuration_of(options, *places, said);
    set_log_format(options.log.empty()     ? configuration.log
                   : options.log == "json" ? LogFormat::Json
                                           : LogFormat::Text);
    if (const auto why =
            untrusted_places(configuration, *places, sites_of(configuration, places->home), said))
      throw NoStart{2, *why};
    const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
    if (options.check_config) {
      EngineProcess(options, *places, std::move(configuration), program, callers_umask).check();
      for (const std::string& text : said) std::cerr << "hpcbatch: " << text << '\n';
      return 0;
    }
    need_own_directory(places->home);
    need_own_directory(std::filesystem::path(places->socket).parent_path().string());
    for (const std::string& text : said) spdlog::warn("{}", text);
    if (const auto limit = file_size_limit()) {
      spdlog::warn(
          "no file of the engine, its pilots and tasks here may grow beyond {} (ulimit -f); that "
          "holds for its store and for this log too",
          show_size(*limit));
    }
    auto taken =
        store::OwnerLock::take(places->home, {configuration.file, options.started_by_client});
    if (const auto* refused = std::get_if<store::NotOwner>(&taken))
      throw NoStart{code_of_lock(refused->why), refused->text};
    EngineProcess process(options, *places, std::move(configuration), program, callers_umask);
    process.open(std::get<store::OwnerLock>(taken));
    spdlog::info("{}{}", kListensInLog, places->socket);
    starter.tell(std::string(1, kEngineReady));
    return process.run();
  } catch (const NoStart& e) {
    starter.tell(e.text);
    std::cerr << "hpcbatch: " << e.text << '\n';
    return e.code;
  } catch (const std::exception& e) {
    starter.tell(e.what());
    std::cerr << "hpcbatch: the engine cannot go on: " << e.what() << '\n';
    return 1;
  }
}

void take_limits_of_session() {
  const pid_t first = first_of_session();
  if (first == 0) return;
  take_niceness(first);
  take_cpus(first);
  for (int which = 0; which < RLIM_NLIMITS; ++which)
    take_limit(first, static_cast<__rlimit_resource>(which));
}

}  // namespace hpcbatch
