/* The only program of a guest: burns processor time, writes to memory, and tells that it is alive.
 *
 * The kernel's command line says how much; what is left out is 0 but for kronos.beat_ms:
 *
 *   kronos.cpu=0.4              share of each vCPU, or a schedule: 0:0.4,60:0.1 (from 60 s after
 *                               the start on, 0.1)
 *   kronos.memory_mb=64         MiB that it holds, all of them written once
 *   kronos.dirty_mb_s=8         MiB of these that it writes each second, one page after the other
 *   kronos.beat_ms=50           milliseconds between two lines on the console
 *
 * A line is "beat NUMBER MILLISECONDS", the second since the guest's start. Whoever reads the
 * console with a clock of his own sees for how long the guest stood still.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Of a slice a thread burns its share and sleeps the rest: short beside any window of load, long
 * beside a tick of the kernel. */
#define SLICE_MS 100
/* Between two looks at the clock, microseconds: what takes longer is no work of the guest's. */
#define TAKEN_AWAY 500
#define PAGE 4096

static char command_line[4096];

static int64_t now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000LL + t.tv_nsec / 1000;
}

static void sleep_us(int64_t us)
{
    struct timespec t = {us / 1000000, us % 1000000 * 1000};
    if (us > 0)
        nanosleep(&t, NULL);
}

static const char *option(const char *name, const char *otherwise)
{
    static char found[1024];
    size_t length = strlen(name);
    for (const char *at = command_line; (at = strstr(at, name)) != NULL; at += length) {
        if ((at == command_line || at[-1] == ' ') && at[length] == '=') {
            size_t end = strcspn(at + length + 1, " \n");
            snprintf(found, sizeof found, "%.*s", (int)end, at + length + 1);
            return found;
        }
    }
    return otherwise;
}

/* "0.4", or "0:0.4,60:0.1" at a time in seconds */
static double share_at(const char *schedule, double seconds)
{
    double share = 0;
    if (strchr(schedule, ':') == NULL)
        return atof(schedule);
    for (const char *at = schedule; at != NULL && *at; at = strchr(at, ',')) {
        double from, value;
        at += *at == ',';
        if (sscanf(at, "%lf:%lf", &from, &value) == 2 && seconds >= from)
            share = value;
    }
    return share;
}

/* Processor time, as far as the guest can tell: while a hypervisor runs others, the clock goes on. */
static void burn_us(int64_t busy)
{
    for (int64_t burnt = 0, before = now_us(), now; burnt < busy; before = now) {
        now = now_us();
        if (now - before < TAKEN_AWAY)
            burnt += now - before;
    }
}

static void *burn(void *schedule)
{
    for (int64_t slice = now_us();; slice += SLICE_MS * 1000) {
        burn_us(share_at(schedule, now_us() / 1e6) * SLICE_MS * 1000);
        sleep_us(slice + SLICE_MS * 1000 - now_us());
        /* A late start costs nothing of the next slice; a whole one that was missed is not made up. */
        if (now_us() - slice > 2 * SLICE_MS * 1000)
            slice = now_us() - SLICE_MS * 1000;
    }
    return NULL;
}

struct memory {
    char *at;
    size_t pages;
    double pages_per_second;
};

static void *dirty(void *argument)
{
    struct memory *memory = argument;
    int64_t begun = now_us();
    for (int64_t written = 0;; sleep_us(SLICE_MS * 100)) {
        int64_t due = (now_us() - begun) / 1e6 * memory->pages_per_second;
        /* What was missed while the guest stood still is not made up for. */
        if (due - written > memory->pages_per_second)
            written = due - memory->pages_per_second;
        for (; written < due; written++)
            memory->at[written % memory->pages * PAGE]++;
    }
    return NULL;
}

int main(void)
{
    pthread_t thread;
    mkdir("/proc", 0755);
    mount("proc", "/proc", "proc", 0, NULL);
    FILE *file = fopen("/proc/cmdline", "r");
    if (file != NULL) {
        command_line[fread(command_line, 1, sizeof command_line - 1, file)] = 0;
        fclose(file);
    }
    const char *schedule = strdup(option("kronos.cpu", "0"));
    static struct memory memory;
    memory.pages = atof(option("kronos.memory_mb", "0")) * 1024 * 1024 / PAGE;
    memory.pages_per_second = atof(option("kronos.dirty_mb_s", "0")) * 1024 * 1024 / PAGE;
    int64_t beat = atof(option("kronos.beat_ms", "50")) * 1000;
    if (memory.pages > 0) {
        memory.at = malloc(memory.pages * PAGE);
        if (memory.at == NULL) {
            puts("no memory");
            memory.pages = 0;
        } else {
            memset(memory.at, 1, memory.pages * PAGE);
        }
    }
    if (memory.pages > 0 && memory.pages_per_second > 0)
        pthread_create(&thread, NULL, dirty, &memory);
    for (long cpu = sysconf(_SC_NPROCESSORS_ONLN); cpu > 0 && strcmp(schedule, "0"); cpu--)
        pthread_create(&thread, NULL, burn, (void *)schedule);
    int64_t begun = now_us();
    for (int64_t number = 0;; number++) {
        printf("beat %lld %lld\n", (long long)number, (long long)(now_us() / 1000));
        fflush(stdout);
        sleep_us(begun + (number + 1) * beat - now_us());
    }
}
