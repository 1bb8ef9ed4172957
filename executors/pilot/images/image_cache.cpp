#include "pilot/images/image_cache.hpp"

#include "pilot/base/files.hpp"
#include "pilot/images/oci_layout.hpp"
#include "pilot/processes/spawn.hpp"
#include "posix/files.hpp"
#include "posix/trusted_path.hpp"
#include "wire/encrypted_link.hpp"

#include <array>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <thread>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hpcbatch::pilot {
namespace {

using namespace std::chrono_literals;
using Said = ImageAnswer::Said;

constexpr time_t kSilence = 60;  // of a holder that is gone, in seconds

constexpr auto kLookAgain = 1s;
constexpr auto kPatience = 1h;  // with another's pull
constexpr std::array<std::chrono::seconds, 3> kTryAgain = {5s, 30s, 0s};
constexpr time_t kLeftOver = time_t{24} * 3600;
constexpr const char* kPulling = "pulling-";
constexpr const char* kUsed = ".used";
constexpr std::size_t kLongestName = 120;
constexpr std::size_t kLongestSize = 100;  // as digits

ImageAnswer missing(std::string text) {
  return {Said::Missing, std::move(text)};
}

/// FNV-1a; it keeps names apart of which the readable part is alike.
std::string short_sum(const std::string& text) {
  std::uint64_t sum = 0xcbf29ce484222325;
  for (const char letter : text) {
    sum ^= static_cast<unsigned char>(letter);
    sum *= 0x100000001b3;
  }
  char digits[20];
  std::snprintf(digits, sizeof digits, "%016" PRIx64, sum);
  return digits;
}

std::string tag_of(const Image& image) {
  const std::string path = path_of(image);
  return image.place.size() > path.size() ? image.place.substr(path.size() + 1) : std::string();
}

/// What of this machine's files it is made of: another image at the same place is another one.
std::string version_of(const Image& image) {
  if (image.kind == ImageKind::Layout) return digest_in_layout(path_of(image), tag_of(image));
  struct stat info {};
  if (image.kind == ImageKind::Archive && ::stat(path_of(image).c_str(), &info) == 0)
    return std::to_string(info.st_size) + " " + std::to_string(info.st_mtim.tv_sec);
  return {};
}

std::string kept_name(const Image& image, Kept kept) {
  const std::string whole = with_transport(image) + " " + version_of(image);
  std::string name;
  for (const char letter : image.place) {
    const bool is_plain =
        std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '.' || letter == '-';
    name += is_plain ? letter : '_';
  }
  if (name.size() > kLongestName) name.erase(0, name.size() - kLongestName);
  const char* ending = kept == Kept::File ? ".sif" : kept == Kept::Archive ? ".tar" : ".tree";
  return name.substr(name.find_first_not_of("._-")) + "-" + short_sum(whole) + ending;
}

bool exists(const std::string& path) {
  return ::access(path.c_str(), R_OK) == 0;
}

std::uint64_t bytes_of(const std::string& path) {
  const auto [status, said] =
      run_program({"du", "-s", "-B1", path}, {"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C"});
  return status == 0 ? std::strtoull(said.c_str(), nullptr, 10) : 0;
}

/// Who is pulled for is told of what the programs said last.
std::string last_line(const std::string& printed) {
  const std::size_t end = printed.find_last_not_of(" \n\r");
  if (end == std::string::npos) return "it said nothing";
  const std::size_t begin = printed.rfind('\n', end);
  return printed.substr(begin == std::string::npos ? 0 : begin + 1,
                        end + 1 - (begin == std::string::npos ? 0 : begin + 1));
}

ImageAnswer failed(const std::string& what, const std::string& printed) {
  return {is_transient_trouble(printed) ? Said::Transient : Said::Missing,
          what + ": " + last_line(printed)};
}

ImageAnswer pull_once(const ImageOrder& order, Kept kept, const std::string& to,
                      const PullLock& lock) {
  const std::string layout = kept == Kept::Tree ? to + ".layout" : to;
  for (const auto& command : pull_commands(order.runtime, order.image, layout)) {
    const auto [status, printed] =
        run_program(command, order.environment, [&lock] { lock.renew(); });
    if (status != 0) {
      remove_tree(layout);
      return failed("cannot pull the image " + order.image.said, printed);
    }
  }
  if (kept != Kept::Tree) return {Said::Ready, to};
  const bool is_ours = order.image.kind == ImageKind::Registry;
  const ImageBudget budget{.bytes = order.limit};
  const std::string trouble =
      is_ours ? unpack_layout(layout, "image", to, budget)
              : unpack_layout(path_of(order.image), tag_of(order.image), to, budget);
  if (is_ours) remove_tree(layout);
  return trouble.empty() ? ImageAnswer{Said::Ready, to} : missing(trouble);
}

ImageAnswer pull(const ImageOrder& order, Kept kept, const std::string& to, const PullLock& lock) {
  ImageAnswer answer;
  for (const auto pause : kTryAgain) {
    answer = pull_once(order, kept, to, lock);
    if (answer.said != Said::Transient || pause == 0s) break;
    std::this_thread::sleep_for(pause);
    lock.renew();
  }
  return answer;
}

std::vector<KeptImage> kept_in(const std::string& cache) {
  std::vector<KeptImage> kept;
  DIR* folder = ::opendir(cache.c_str());
  if (folder == nullptr) return kept;
  const time_t now = std::time(nullptr);
  while (const dirent* entry = ::readdir(folder)) {
    const std::string name = entry->d_name;
    std::string path = cache;
    path.append("/").append(name);
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) continue;
    if (name.starts_with(kPulling) && now - info.st_mtime > kLeftOver) {
      if (!remove_tree(path)) ::unlink(path.c_str());
    }
    if (!name.ends_with(kUsed)) continue;
    kept.push_back(
        {name.substr(0, name.size() - std::strlen(kUsed)),
         std::strtoull(read_regular(AT_FDCWD, path, kLongestSize).text.c_str(), nullptr, 10),
         std::chrono::seconds(now - info.st_mtime)});
  }
  ::closedir(folder);
  return kept;
}

void make_room(const ImageOrder& order) {
  for (const std::string& name : images_to_remove(kept_in(order.cache), order.limit)) {
    const std::string path = order.cache + "/" + name;
    const std::string aside =
        order.cache + "/" + kPulling + wire::to_hex(wire::random_key()).substr(0, 16);
    // At once for whoever looks: half an image must not be found.
    if (::rename(path.c_str(), aside.c_str()) != 0) continue;
    ::unlink((path + kUsed).c_str());
    if (!remove_tree(aside)) ::unlink(aside.c_str());
  }
}

ImageAnswer pull_and_keep(const ImageOrder& order, Kept kept, const std::string& place,
                          const PullLock& lock) {
  const std::string to = order.cache + "/" + kPulling +
                         wire::to_hex(wire::random_key()).substr(0, 16) +
                         (kept == Kept::File ? ".sif" : "");
  ImageAnswer answer = pull(order, kept, to, lock);
  if (answer.said == Said::Ready) {
    // Without it the image is not counted, and kept.
    replace_file(AT_FDCWD, place + kUsed, std::to_string(bytes_of(to)) + "\n", {.sync = false});
    if (::rename(to.c_str(), place.c_str()) == 0 || exists(place)) {
      answer.text = place;
    } else {
      answer = {Said::Transient, "cannot keep the image at " + place + ": " + std::strerror(errno)};
    }
  }
  if (!remove_tree(to)) ::unlink(to.c_str());
  if (answer.said == Said::Ready) make_room(order);
  return answer;
}

/// Once for the site: whoever comes second waits for the first.
ImageAnswer keep_for_site(const ImageOrder& order, Kept kept) {
  // What others put there in place of an image would run as our user.
  const auto distrusted = distrust(walk_path(order.cache, ::geteuid()), Wanted::Folder, "");
  if (distrusted && distrusted->is_refusal)
    return {Said::Transient,
            "no image is kept in " + order.cache + " (HPCBATCH_IMAGES): " + distrusted->text};
  if (!make_folders_above(order.cache + "/x", 0) && !exists(order.cache))
    return {Said::Transient,
            "cannot make the folder for images " + order.cache + ": " + std::strerror(errno)};
  const std::string place = order.cache + "/" + kept_name(order.image, kept);
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (!exists(place)) {
    PullLock lock(place + ".lock");
    if (lock.take()) {
      if (exists(place)) break;
      return pull_and_keep(order, kept, place, lock);
    }
    if (errno != EEXIST)
      return {Said::Transient,
              "cannot pull the image into " + order.cache + ": " + std::strerror(errno)};
    if (std::chrono::steady_clock::now() > until)
      return {Said::Transient, "another pilot has not ended its pull of " + order.image.said};
    std::this_thread::sleep_for(kLookAgain);
  }
  say_used(place);
  return {Said::Ready, place};
}

ImageAnswer load(const ImageOrder& order, const std::string& archive) {
  const auto [status, printed] =
      run_program(load_command(order.runtime, order.image, archive), order.environment);
  if (status != 0)
    return failed(
        "cannot give the image " + order.image.said + " to " + name_of(order.runtime.runtime),
        printed);
  const std::string number = loaded_image(printed);
  if (!number.empty()) return {Said::Ready, number};
  return missing(std::string(name_of(order.runtime.runtime)) +
                 " does not say what it calls the image " + order.image.said + ": " +
                 last_line(printed));
}

}  // namespace

PullLock::~PullLock() {
  if (is_held_) ::unlink(path_.c_str());
}

bool PullLock::take() {
  for (int round = 0; round < 2; ++round) {
    const Fd file(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (file) {
      is_held_ = true;
      return true;
    }
    if (errno != EEXIST) return false;
    if (!is_given_up()) break;
    // Of several who see that it is given up, one moves it aside.
    const std::string aside = path_ + "." + wire::to_hex(wire::random_key()).substr(0, 12);
    if (::rename(path_.c_str(), aside.c_str()) == 0) ::unlink(aside.c_str());
  }
  errno = EEXIST;
  return false;
}

void PullLock::renew() const {
  ::utimensat(AT_FDCWD, path_.c_str(), nullptr, 0);
}

/// By the clock of whoever keeps the files: a file made now says what that shows.
bool PullLock::is_given_up() const {
  struct stat held {};
  if (::stat(path_.c_str(), &held) != 0) return errno == ENOENT;
  const std::string clock = path_ + ".clock." + wire::to_hex(wire::random_key()).substr(0, 12);
  const Fd file(::open(clock.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  struct stat now {};
  const bool is_known = file && ::fstat(file.get(), &now) == 0;
  ::unlink(clock.c_str());
  return is_known && now.st_mtime - held.st_mtime > kSilence;
}

bool has_to_be_prepared(const FoundRuntime& runtime, const Image& image) {
  return kept_for(runtime.runtime, image.kind) != Kept::Nothing ||
         is_loaded(runtime.runtime, image.kind);
}

ImageAnswer prepare_image(const ImageOrder& order) {
  const Kept kept = kept_for(order.runtime.runtime, order.image.kind);
  ImageAnswer answer{Said::Ready, {}};
  if (kept != Kept::Nothing) answer = keep_for_site(order, kept);
  if (answer.said != Said::Ready || !is_loaded(order.runtime.runtime, order.image.kind))
    return answer;
  return load(order, answer.text);
}

void say_used(const std::string& kept) {
  ::utimensat(AT_FDCWD, (kept + kUsed).c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
}

std::string to_text(const ImageAnswer& answer) {
  constexpr std::array<const char*, 3> kWords = {"ready ", "transient ", "missing "};
  return kWords.at(static_cast<std::size_t>(answer.said)) + answer.text;
}

ImageAnswer image_answer(const std::string& text) {
  const std::size_t blank = text.find(' ');
  const std::string word = text.substr(0, blank);
  const std::string rest = blank == std::string::npos ? text : text.substr(blank + 1);
  if (word == "ready") return {Said::Ready, rest};
  return {word == "missing" ? Said::Missing : Said::Transient, rest};
}

}  // namespace hpcbatch::pilot
