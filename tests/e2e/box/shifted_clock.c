/*
 * Shifts the wall clock of a process, for LD_PRELOAD.
 *
 * The file that KRONOS_CLOCK names has the offset in nanoseconds, as a native 64-bit integer. It is
 * mapped, so a change is seen at once by every process. Monotonic clocks, sleeps and waits for a
 * while are not changed. A wait until a time of the wall clock is turned back by the offset.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL
/* A machine is not up for 15 years: a later time is one of the wall clock. */
#define LONGEST_UPTIME 500000000LL

static int64_t none;
static volatile int64_t *shared;

static int64_t offset(void)
{
    if (!shared) {
        const char *path = getenv("KRONOS_CLOCK");
        int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        void *mapped = file < 0 ? MAP_FAILED : mmap(NULL, sizeof none, PROT_READ, MAP_SHARED, file, 0);

        if (file >= 0)
            close(file);
        shared = mapped == MAP_FAILED ? &none : mapped;
    }
    return *shared;
}

static void shift(struct timespec *at, int64_t by)
{
    int64_t ns = at->tv_sec * SECOND + at->tv_nsec + by;

    at->tv_sec = ns / SECOND;
    at->tv_nsec = ns % SECOND;
}

static int is_wall(clockid_t id)
{
    return id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE;
}

int clock_gettime(clockid_t id, struct timespec *now)
{
    if (syscall(SYS_clock_gettime, id, now))
        return -1;
    if (is_wall(id))
        shift(now, offset());
    return 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec at;

    (void) zone;
    clock_gettime(CLOCK_REALTIME, &at);
    now->tv_sec = at.tv_sec;
    now->tv_usec = at.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *out)
{
    struct timespec at;

    clock_gettime(CLOCK_REALTIME, &at);
    if (out)
        *out = at.tv_sec;
    return at.tv_sec;
}

int timespec_get(struct timespec *now, int base)
{
    return base == TIME_UTC && !clock_gettime(CLOCK_REALTIME, now) ? base : 0;
}

static struct timespec unshifted(const struct timespec *until)
{
    struct timespec real = *until;

    if (real.tv_sec > LONGEST_UPTIME)
        shift(&real, -offset());
    return real;
}

int pthread_cond_timedwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict until)
{
    static int (*next)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    struct timespec real = unshifted(until);

    if (!next)      /* dlsym() may find the oldest version, with conditions of another shape */
        next = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
    if (!next)
        next = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    return next(cond, mutex, &real);
}

#define TIMED(name, argument) \
    int name(argument, const struct timespec *restrict until) \
    { \
        static int (*next)(argument, const struct timespec *); \
        struct timespec real = unshifted(until); \
        if (!next) \
            next = dlsym(RTLD_NEXT, #name); \
        return next(object, &real); \
    }
#define CLOCKED(name, argument) \
    int name(argument, clockid_t id, const struct timespec *restrict until) \
    { \
        static int (*next)(argument, clockid_t, const struct timespec *); \
        struct timespec real = unshifted(until); \
        if (!next) \
            next = dlsym(RTLD_NEXT, #name); \
        return next(object, id, &real); \
    }

TIMED(sem_timedwait, sem_t *restrict object)
TIMED(pthread_mutex_timedlock, pthread_mutex_t *restrict object)
TIMED(pthread_rwlock_timedrdlock, pthread_rwlock_t *restrict object)
TIMED(pthread_rwlock_timedwrlock, pthread_rwlock_t *restrict object)
CLOCKED(sem_clockwait, sem_t *restrict object)
CLOCKED(pthread_mutex_clocklock, pthread_mutex_t *restrict object)

int pthread_cond_clockwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex,
                           clockid_t id, const struct timespec *restrict until)
{
    static int (*next)(pthread_cond_t *, pthread_mutex_t *, clockid_t, const struct timespec *);
    struct timespec real = unshifted(until);

    if (!next)
        next = dlsym(RTLD_NEXT, "pthread_cond_clockwait");
    return next(cond, mutex, id, &real);
}

int clock_nanosleep(clockid_t id, int flags, const struct timespec *until, struct timespec *rest)
{
    struct timespec real = is_wall(id) && flags & TIMER_ABSTIME ? unshifted(until) : *until;

    return syscall(SYS_clock_nanosleep, id, flags, &real, rest) ? errno : 0;
}
