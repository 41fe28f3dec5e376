// The process around the conversation: the channel to the harness, last words, what /proc says.
#pragma once

#include <string>
#include <vector>

#include "json.h"

namespace compat {

class Channel {
 public:
  // Takes over the two descriptors of SAVEDMODEL_COMPAT_FD, and ends the process when nobody is left to write requests.
  // Exits with a message when the environment names none.
  static Channel Inherited();

  // The next line, without its end; false when the channel is closed.
  bool ReadLine(std::string* line);
  void Write(const std::string& line);

 private:
  Channel(int in, int out) : in_(in), out_(out) {}
  int in_, out_;
  std::string buffer_;
};

// What the process is busy with, for its last words. `words` must live as long as the program.
void BusyWith(const char* words);
// Makes a crash, and SIGUSR1, write what the process was doing to stderr.
void InstallLastWords();

// Paths of the TensorFlow libraries mapped into this process (Linux; elsewhere an empty list).
std::vector<std::string> MappedLibraries();
// Resident memory in KiB, null where the system does not say.
Json ResidentKib();

}  // namespace compat
