// A slow file system, as a library to preload: writes come in two parts with a pause between them, and every call that changes
// a directory or waits for the disk pauses before and behind. Pauses are random, up to SLOW_FILES microseconds.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static void Pause(void) {
  static unsigned seed;
  static long most = -1;
  if (most < 0) {
    const char* text = getenv("SLOW_FILES");
    most = text ? atol(text) : 0;
  }
  if (!seed) seed = (unsigned)getpid();
  if (most) usleep((useconds_t)(rand_r(&seed) % most));
}

// The function of the C library behind one of ours.
#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

#define SLOW(type, name, parameters, arguments) \
  type name parameters {                        \
    Pause();                                    \
    type result = REAL(name) arguments;         \
    Pause();                                    \
    return result;                              \
  }

SLOW(int, fsync, (int fd), (fd))
SLOW(int, fdatasync, (int fd), (fd))
SLOW(int, ftruncate, (int fd, off_t size), (fd, size))
SLOW(int, rename, (const char* from, const char* to), (from, to))
SLOW(int, renameat, (int from_fd, const char* from, int to_fd, const char* to), (from_fd, from, to_fd, to))
SLOW(int, renameat2, (int from_fd, const char* from, int to_fd, const char* to, unsigned flags), (from_fd, from, to_fd, to, flags))
SLOW(int, unlink, (const char* path), (path))
SLOW(int, unlinkat, (int fd, const char* path, int flags), (fd, path, flags))
SLOW(int, rmdir, (const char* path), (path))
SLOW(int, mkdir, (const char* path, mode_t mode), (path, mode))

ssize_t write(int fd, const void* data, size_t size) {
  struct stat status;
  if (size < 2 || fstat(fd, &status) || !S_ISREG(status.st_mode)) return REAL(write)(fd, data, size);
  Pause();
  return REAL(write)(fd, data, size / 2);  // the rest is the caller's to write, as it may be on any file system
}
