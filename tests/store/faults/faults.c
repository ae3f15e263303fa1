/* Let one system call that writes below a folder fail, to be preloaded (LD_PRELOAD).
 *
 * Calls are counted from faults_arm() on: those that write, synchronise, cut, rename or delete a
 * file below the folder, or open one for writing. The call of the given number goes wrong:
 *
 *   ONCE   it fails, as on a bad or full disk; later calls work again
 *   EVER   it fails, and so do all later ones
 *   SHORT  a write takes only half of its bytes, and says so; other calls fail as in ONCE
 *   KILL   the process is killed just before it
 *   TORN   a write takes half of its bytes, then the process is killed; other calls as in KILL
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { OFF, COUNT, ONCE, EVER, SHORT, KILL, TORN };

static int mode = OFF, error_code = EIO;
static long calls = 0, fatal_call = 0;
static char folder[4096];

void faults_arm(const char *path, int how, long number, int code) {
    snprintf(folder, sizeof folder, "%s", path);
    fatal_call = number, error_code = code, calls = 0, mode = how;
}

long faults_disarm(void) {
    mode = OFF;
    return calls;
}

static int is_ours(const char *path) {
    return path && strncmp(path, folder, strlen(folder)) == 0;
}

static int is_our_file(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size < 0) return 0;
    path[size] = 0;
    return is_ours(path);
}

/* Count a call; return 1 if it is to fail, 2 if it is to write a half. */
static int goes_wrong(int ours, int writes) {
    if (mode == OFF || !ours) return 0;
    calls++;
    if (mode == COUNT || calls < fatal_call || (calls > fatal_call && mode != EVER)) return 0;
    if ((mode == SHORT || mode == TORN) && writes) return 2;
    if (mode == KILL || mode == TORN) kill(getpid(), SIGKILL);
    errno = error_code;
    return 1;
}

static void after_a_half(void) {
    if (mode == TORN) kill(getpid(), SIGKILL);
}

#define REAL(name) __typeof__(&name) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

#define WRITING(name, parameters, half, whole)                     \
    ssize_t name parameters {                                      \
        REAL(name);                                                \
        int saved = errno;                                         \
        int ours = mode != OFF && is_our_file(fd);                 \
        errno = saved;                                             \
        switch (goes_wrong(ours, 1)) {                             \
            case 1: return -1;                                     \
            case 2: {                                              \
                ssize_t done = real half;                          \
                after_a_half();                                    \
                return done;                                       \
            }                                                      \
        }                                                          \
        return real whole;                                         \
    }

WRITING(write, (int fd, const void *data, size_t n), (fd, data, n / 2), (fd, data, n))
WRITING(pwrite, (int fd, const void *data, size_t n, off_t at), (fd, data, n / 2, at),
        (fd, data, n, at))
WRITING(pwrite64, (int fd, const void *data, size_t n, off64_t at), (fd, data, n / 2, at),
        (fd, data, n, at))
WRITING(writev, (int fd, const struct iovec *parts, int n), (fd, parts, (n + 1) / 2),
        (fd, parts, n))

#define CHANGING(name, parameters, ours, arguments)                \
    int name parameters {                                          \
        REAL(name);                                                \
        int saved = errno;                                         \
        int own = mode != OFF && (ours);                           \
        errno = saved;                                             \
        return goes_wrong(own, 0) ? -1 : real arguments;           \
    }

CHANGING(fsync, (int fd), is_our_file(fd), (fd))
CHANGING(fdatasync, (int fd), is_our_file(fd), (fd))
CHANGING(ftruncate, (int fd, off_t size), is_our_file(fd), (fd, size))
CHANGING(ftruncate64, (int fd, off64_t size), is_our_file(fd), (fd, size))
CHANGING(rename, (const char *from, const char *to), is_ours(to), (from, to))
CHANGING(unlink, (const char *path), is_ours(path), (path))

#define OPENING(name, parameters, arguments)                       \
    int name parameters {                                          \
        REAL(name);                                                \
        va_list rest;                                              \
        va_start(rest, flags);                                     \
        mode_t rights = flags & O_CREAT ? va_arg(rest, mode_t) : 0; \
        va_end(rest);                                              \
        int writes = (flags & O_ACCMODE) != O_RDONLY;              \
        return goes_wrong(writes && is_ours(path), 0) ? -1 : real arguments; \
    }

OPENING(open, (const char *path, int flags, ...), (path, flags, rights))
OPENING(open64, (const char *path, int flags, ...), (path, flags, rights))
OPENING(openat, (int at, const char *path, int flags, ...), (at, path, flags, rights))
OPENING(openat64, (int at, const char *path, int flags, ...), (at, path, flags, rights))
