// The program behind compat_matrix/workers/cpp_worker.py: `cpp_worker IN OUT`, two inherited descriptors.
//
// A message is its length, eight bytes little-endian, and the serialized proto (loader.h).
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <execinfo.h>
#include <poll.h>
#include <string>
#include <thread>
#include <unistd.h>

#include "loader.h"

namespace compat {
namespace {

constexpr int kWrongUse = 64, kHarnessGone = 70;  // exit statuses
constexpr int kMaxFrames = 64;

const char* volatile busy_with = "nothing: it waits for a request";
char operation[32];

void Say(const char* words) {
  if (write(STDERR_FILENO, words, std::strlen(words)) < 0) return;
}

// Writes to stderr what the process was doing: after a crash, and when SIGUSR1 asks.
void LastWords(int number) {
  void* frames[kMaxFrames];
  Say(number == SIGUSR1 ? "\nasked what it is doing: " : "\ncrashed in: ");
  Say(const_cast<const char*>(busy_with));
  Say("\n");
  backtrace_symbols_fd(frames, backtrace(frames, kMaxFrames), STDERR_FILENO);
  if (number != SIGUSR1) raise(number);  // by now with the system's own handler
}

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

void DieWithHarness(int descriptor) {
  pollfd poller = {descriptor, 0, 0};  // POLLHUP is always reported
  while (poll(&poller, 1, -1) < 0 && errno == EINTR) {
  }
  _exit(kHarnessGone);
}

// `call` is read or write. False when the other side is gone.
template <typename Call, typename Bytes>
bool Whole(Call call, int descriptor, Bytes* bytes, uint64_t size) {
  for (uint64_t done = 0; done < size;) {
    const ssize_t count = call(descriptor, bytes + done, size - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    done += static_cast<uint64_t>(count);
  }
  return true;
}

bool Receive(int in, std::string* message) {
  unsigned char prefix[8];
  if (!Whole(read, in, prefix, sizeof(prefix))) return false;
  uint64_t size = 0;
  for (int i = 7; i >= 0; --i) size = size << 8 | prefix[i];
  message->resize(size);
  return Whole(read, in, &(*message)[0], size);
}

bool Send(int out, const std::string& message) {
  unsigned char prefix[8];
  for (int i = 0; i < 8; ++i) prefix[i] = static_cast<unsigned char>(message.size() >> (8 * i));
  return Whole(write, out, prefix, sizeof(prefix)) && Whole(write, out, message.data(), message.size());
}

void Serve(int in, int out) {
  Loader loader;
  for (std::string message; Receive(in, &message);) {
    tensorflow::RunStepRequest request;
    tensorflow::RunStepResponse response;
    if (!request.ParseFromString(message)) _exit(kWrongUse);
    std::snprintf(operation, sizeof(operation), "%s", request.target_size() ? request.target(0).c_str() : "");
    busy_with = operation;
    loader.Answer(request, &response);
    if (!Send(out, response.SerializeAsString())) break;
    busy_with = "nothing: it waits for a request";
  }
}

}  // namespace
}  // namespace compat

int main(int count, char** words) {
  if (count != 3) {
    std::fprintf(stderr, "%s IN OUT: this program is started by savedmodel-compat\n", words[0]);
    return compat::kWrongUse;
  }
  const int in = std::atoi(words[1]), out = std::atoi(words[2]);
  compat::InstallLastWords();
  std::signal(SIGPIPE, SIG_IGN);
  std::thread(compat::DieWithHarness, in).detach();
  compat::Serve(in, out);
  _exit(0);  // unloading TensorFlow takes most of a second, and nobody looks any more
}
