// A clock that is set by hours, forwards and backwards, as a library to preload: four times in each second, at JUMPING_CLOCK's
// pleasure never. Only what time of day it is changes; the monotonic clock and everything that waits by it do not.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static const long kHours[] = {0, 3, -5, 48, -24, 1, -9000, 700};

static long Shift(int (*real)(clockid_t, struct timespec*)) {
  struct timespec now;
  if (!getenv("JUMPING_CLOCK") || real(CLOCK_MONOTONIC, &now)) return 0;
  long quarters = now.tv_sec * 4 + now.tv_nsec / 250000000;
  return kHours[quarters % (long)(sizeof kHours / sizeof *kHours)] * 3600;
}

int clock_gettime(clockid_t clock, struct timespec* out) {
  int (*real)(clockid_t, struct timespec*) = (int (*)(clockid_t, struct timespec*))dlsym(RTLD_NEXT, "clock_gettime");
  int failed = real(clock, out);
  if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) out->tv_sec += Shift(real);
  return failed;
}

int gettimeofday(struct timeval* restrict out, void* restrict zone) {
  struct timespec now;
  int failed = clock_gettime(CLOCK_REALTIME, &now);
  if (!failed) out->tv_sec = now.tv_sec, out->tv_usec = now.tv_nsec / 1000;
  (void)zone;
  return failed;
}

time_t time(time_t* out) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (out) *out = now.tv_sec;
  return now.tv_sec;
}
