#define _GNU_SOURCE
#include "CSimulation.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const int64_t SECOND = 1000000000;

static int is_active;
static int64_t now = 1000 * 1000000000ll;
static int64_t wall_offset;
static uint64_t random_state;
static simulation_scheduler scheduler;

#define ORIGINAL(name) ((__typeof__(&name))original(#name))
static void *original(const char *name) { return dlsym(RTLD_NEXT, name); }

// MARK: Clocks

int64_t simulation_time(void) { return now; }
void simulation_set_time(int64_t time) { now = time; }
void simulation_set_wall_offset(int64_t offset) { wall_offset = offset; }

static struct timespec simulated(clockid_t clock) {
    int64_t time = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI ? now + wall_offset : now;
    return (struct timespec){time / SECOND, time % SECOND};
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    if (!is_active) return ORIGINAL(clock_gettime)(clock, time);
    *time = simulated(clock);
    return 0;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    if (!is_active) return ORIGINAL(gettimeofday)(time, zone);
    struct timespec value = simulated(CLOCK_REALTIME);
    *time = (struct timeval){value.tv_sec, value.tv_nsec / 1000};
    return 0;
}

time_t time(time_t *result) {
    struct timespec value;
    clock_gettime(CLOCK_REALTIME, &value);
    if (result) *result = value.tv_sec;
    return value.tv_sec;
}

/// SQLite waits for a lock by these.
int nanosleep(const struct timespec *duration, struct timespec *rest) {
    if (!is_active) return ORIGINAL(nanosleep)(duration, rest);
    now += duration->tv_sec * SECOND + duration->tv_nsec;
    return 0;
}

int usleep(useconds_t duration) {
    struct timespec value = {duration / 1000000, (long)(duration % 1000000) * 1000};
    return nanosleep(&value, NULL);
}

int64_t simulation_processor_time(void) {
    struct timespec value;
    ORIGINAL(clock_gettime)(CLOCK_PROCESS_CPUTIME_ID, &value);
    return value.tv_sec * SECOND + value.tv_nsec;
}

// MARK: Random numbers

/// SplitMix64.
static uint64_t next_random(void) {
    uint64_t value = random_state += 0x9E3779B97F4A7C15u;
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9u;
    value = (value ^ value >> 27) * 0x94D049BB133111EBu;
    return value ^ value >> 31;
}

static void fill(void *bytes, size_t count) {
    for (size_t start = 0; start < count; start += 8) {
        uint64_t value = next_random();
        memcpy((char *)bytes + start, &value, count - start < 8 ? count - start : 8);
    }
}

ssize_t getrandom(void *bytes, size_t count, unsigned flags) {
    if (!is_active) return ORIGINAL(getrandom)(bytes, count, flags);
    fill(bytes, count);
    return (ssize_t)count;
}

int getentropy(void *bytes, size_t count) { return getrandom(bytes, count, 0) == (ssize_t)count ? 0 : -1; }

/// OpenSSL's own would depend on addresses: they are a part of its generators' nonces.
int RAND_bytes(unsigned char *bytes, int count);
int RAND_bytes(unsigned char *bytes, int count) {
    if (!is_active) return ORIGINAL(RAND_bytes)(bytes, count);
    fill(bytes, (size_t)count);
    return 1;
}

int RAND_priv_bytes(unsigned char *bytes, int count);
int RAND_priv_bytes(unsigned char *bytes, int count) {
    if (!is_active) return ORIGINAL(RAND_priv_bytes)(bytes, count);
    fill(bytes, (size_t)count);
    return 1;
}

/// Swift's standard library reads random numbers by the system call.
long syscall(long number, ...) {
    va_list list;
    va_start(list, number);
    long arguments[6];
    for (int index = 0; index < 6; index++) arguments[index] = va_arg(list, long);
    va_end(list);
    if (is_active && number == SYS_getrandom) return getrandom((void *)arguments[0], (size_t)arguments[1], 0);
    static long (*real)(long, ...);
    if (!real) real = ORIGINAL(syscall);
    return real(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
}

// MARK: Addresses

static const char *const disturbance = "SIMULATION_DISTURBANCE";

extern void *__libc_malloc(size_t count);

/// With SIMULATION_DISTURBANCE, a number, further memory is allocated at times, so that all addresses are others.
void *malloc(size_t count) {
    static uint64_t state;
    static int is_known;
    static void *further[256];
    if (!is_known) {
        is_known = 1;
        const char *value = getenv(disturbance);
        if (value) state = strtoull(value, NULL, 10);
    }
    if (state) {
        // Xorshift.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        if (state >> 61 == 0) {
            void **place = &further[state % 256];
            free(*place);
            *place = __libc_malloc(state >> 32 & 511);
        }
    }
    return __libc_malloc(count);
}

// MARK: Dispatch

typedef struct {
    void *isa;
    int flags;
    int reserved;
    void (*invoke)(void *block);
} block_layout;

extern void *_Block_copy(const void *block);
extern void _Block_release(const void *block);

void dispatch_async(void *queue, void *block);
void dispatch_async(void *queue, void *block) {
    if (!is_active) return ORIGINAL(dispatch_async)(queue, block);
    scheduler.block_submitted(queue, _Block_copy(block));
}

void dispatch_sync(void *queue, void *block);
void dispatch_sync(void *queue, void *block) {
    if (is_active) scheduler.queue_awaited(queue);
    ORIGINAL(dispatch_sync)(queue, block);
}

void dispatch_after_f(uint64_t when, void *queue, void *context, void (*function)(void *));
void dispatch_after_f(uint64_t when, void *queue, void *context, void (*function)(void *)) {
    if (!is_active) return ORIGINAL(dispatch_after_f)(when, queue, context, function);
    // The two highest bits name the clock. Both monotonic clocks are the same here.
    scheduler.timer_set((int64_t)(when & ~(3ull << 62)), function, context);
}

typedef struct {
    void *queue;
    void *block;
} timed_block;

static void submit_timed(void *context) {
    timed_block timed = *(timed_block *)context;
    free(context);
    scheduler.block_submitted(timed.queue, timed.block);
}

void dispatch_after(uint64_t when, void *queue, void *block);
void dispatch_after(uint64_t when, void *queue, void *block) {
    if (!is_active) return ORIGINAL(dispatch_after)(when, queue, block);
    timed_block *timed = malloc(sizeof *timed);
    *timed = (timed_block){queue, _Block_copy(block)};
    scheduler.timer_set((int64_t)(when & ~(3ull << 62)), submit_timed, timed);
}

void dispatch_async_f(void *queue, void *context, void (*function)(void *));
void dispatch_async_f(void *queue, void *context, void (*function)(void *)) {
    if (!is_active) return ORIGINAL(dispatch_async_f)(queue, context, function);
    scheduler.timer_set(now, function, context);
}

/// Swift sets the width of the queue for its timers, by a thread of Dispatch's. That queue is not used here.
void dispatch_queue_set_width(void *queue, long width);
void dispatch_queue_set_width(void *queue, long width) {
    if (!is_active) ORIGINAL(dispatch_queue_set_width)(queue, width);
}

/// Dispatch frees a queue on a thread of its own. Leaked instead: only a start of the node makes queues.
void dispatch_release(void *object);
void dispatch_release(void *object) {
    if (!is_active) ORIGINAL(dispatch_release)(object);
}

void simulation_run_block(void *block) {
    ((block_layout *)block)->invoke(block);
    _Block_release(block);
}

extern const char *dispatch_queue_get_label(void *queue);
const char *simulation_label(void *queue) { return dispatch_queue_get_label(queue); }

// MARK: Swift's tasks

#define SWIFT __attribute__((swiftcall))

typedef struct {
    void *identity;
    uintptr_t implementation;
} executor_reference;

typedef SWIFT void (*enqueue)(void *job);
extern SWIFT void (*swift_task_enqueueGlobal_hook)(void *job, enqueue original);
extern SWIFT void swift_job_run(void *job, executor_reference executor);

static SWIFT void enqueue_global(void *job, enqueue original) {
    (void)original;
    scheduler.task_ready(job);
}

void simulation_run_job(void *job) { swift_job_run(job, (executor_reference){NULL, 0}); }

// MARK: Beginning

static const char *const is_prepared = "SWIFT_DETERMINISTIC_HASHING";

void simulation_prepare(char *const arguments[]) {
    if (getenv(is_prepared)) return;
    char other[64] = "";
    if (getenv(disturbance)) snprintf(other, sizeof other, "%s=%s", disturbance, getenv(disturbance));
    char *const environment[] = {"SWIFT_DETERMINISTIC_HASHING=1", *other ? other : NULL, NULL};
    if (personality(ADDR_NO_RANDOMIZE) == -1) {
        perror("addresses can't be kept from being random");
        exit(71);
    }
    execve("/proc/self/exe", arguments, environment);
    perror("the program can't be run again");
    exit(71);
}

void simulation_begin(uint64_t seed, simulation_scheduler given) {
    scheduler = given;
    random_state = seed;
    swift_task_enqueueGlobal_hook = enqueue_global;
    is_active = 1;
}
