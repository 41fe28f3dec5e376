#include "process.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <execinfo.h>
#include <fcntl.h>
#include <fstream>
#include <poll.h>
#include <set>
#include <sstream>
#include <thread>
#include <unistd.h>

namespace compat {
namespace {

constexpr int kHarnessGone = 70;  // exit status
constexpr size_t kMaxLine = 64 << 20;
constexpr int kMaxFrames = 64;

const char* volatile busy_with = "nothing yet";

void Say(const char* words) {
  if (write(STDERR_FILENO, words, std::strlen(words)) < 0) return;
}

void LastWords(int number) {
  void* frames[kMaxFrames];
  Say(number == SIGUSR1 ? "\nasked what it is doing: " : "\ncrashed in: ");
  Say(const_cast<const char*>(busy_with));
  Say("\n");
  backtrace_symbols_fd(frames, backtrace(frames, kMaxFrames), STDERR_FILENO);
  if (number != SIGUSR1) raise(number);  // by now with the system's own handler
}

void DieWithHarness(int descriptor) {
  pollfd poller = {descriptor, 0, 0};  // POLLHUP is always reported
  while (poll(&poller, 1, -1) < 0 && errno == EINTR) {
  }
  _exit(kHarnessGone);
}

}  // namespace

Channel Channel::Inherited() {
  const char* value = std::getenv("SAVEDMODEL_COMPAT_FD");
  int in = -1, out = -1;
  const bool named = value && std::sscanf(value, "%d,%d", &in, &out) == 2;
  if (!named || fcntl(in, F_SETFD, FD_CLOEXEC) || fcntl(out, F_SETFD, FD_CLOEXEC)) {
    std::fprintf(stderr, "SAVEDMODEL_COMPAT_FD names no open descriptors: this program is started by savedmodel-compat\n");
    std::exit(64);
  }
  unsetenv("SAVEDMODEL_COMPAT_FD");
  std::signal(SIGPIPE, SIG_IGN);
  std::thread(DieWithHarness, in).detach();
  return Channel(in, out);
}

bool Channel::ReadLine(std::string* line) {
  char chunk[1 << 16];
  size_t seen = 0;
  for (;;) {
    const size_t end = buffer_.find('\n', seen);
    if (end != std::string::npos) {
      *line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return true;
    }
    seen = buffer_.size();
    const ssize_t count = read(in_, chunk, sizeof(chunk));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0 || seen > kMaxLine) return false;
    buffer_.append(chunk, static_cast<size_t>(count));
  }
}

void Channel::Write(const std::string& line) {
  const std::string data = line + "\n";
  for (size_t done = 0; done < data.size();) {
    const ssize_t count = write(out_, data.data() + done, data.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) _exit(kHarnessGone);
    done += static_cast<size_t>(count);
  }
}

void BusyWith(const char* words) { busy_with = words; }

void InstallLastWords() {
  void* frames[1];
  backtrace(frames, 1);  // loads what it needs now; a handler must not
  struct sigaction action;
  std::memset(&action, 0, sizeof(action));
  action.sa_handler = LastWords;
  action.sa_flags = SA_RESTART;
  sigaction(SIGUSR1, &action, nullptr);
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
  for (int number : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL}) sigaction(number, &action, nullptr);
}

std::vector<std::string> MappedLibraries() {
  std::set<std::string> found;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const size_t start = line.find('/');
    if (start == std::string::npos) continue;
    const std::string path = line.substr(start), name = path.substr(path.rfind('/') + 1);
    if (name.rfind("libtensorflow", 0) == 0 || name.rfind("_pywrap_tensorflow_internal", 0) == 0) found.insert(path);
  }
  return {found.begin(), found.end()};
}

Json ResidentKib() {
  std::ifstream statm("/proc/self/statm");
  int64_t total = 0, resident = 0;
  if (!(statm >> total >> resident)) return Json();
  return Json(resident * (sysconf(_SC_PAGESIZE) / 1024));
}

}  // namespace compat
