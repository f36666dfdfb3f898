// Tells the thread sanitizer what it can't see of Synchronization.Mutex. Preloaded by `Deploy/dev/sanitize thread`.
//
// The quick way through the mutex is compiled into whoever uses it, and so instrumented. A mutex that is contended goes the slow way, in the
// standard library, which is not: the sanitizer never learns that the thread has the lock, and reports a race on whatever it protects.
// This stands before the library's functions, calls them, and says what they did. It hides nothing: see contended-mutex.swift and real-race.swift.

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#define LOCK_SLOW "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
#define TRY_LOCK_SLOW "$s15Synchronization12_MutexHandleV12_tryLockSlowSbyF"
#define UNLOCK_SLOW "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"

#define SWIFT __attribute__((swiftcall))
#define SELF __attribute__((swift_context))

typedef SWIFT void lock_function(uint32_t thread, SELF void *handle);
typedef SWIFT bool try_lock_function(SELF void *handle);
typedef SWIFT void unlock_function(SELF void *handle);

// Not there in a process that is not instrumented, such as swift test itself.
__attribute__((weak)) void __tsan_acquire(void *address);
__attribute__((weak)) void __tsan_release(void *address);

static void *library_function(const char *name) {
    void *function = dlsym(RTLD_NEXT, name);
    if (!function) abort();
    return function;
}

SWIFT void lock_slow(uint32_t thread, SELF void *handle) __asm__(LOCK_SLOW);
SWIFT void lock_slow(uint32_t thread, SELF void *handle) {
    ((lock_function *)library_function(LOCK_SLOW))(thread, handle);
    if (__tsan_acquire) __tsan_acquire(handle);
}

SWIFT bool try_lock_slow(SELF void *handle) __asm__(TRY_LOCK_SLOW);
SWIFT bool try_lock_slow(SELF void *handle) {
    bool isLocked = ((try_lock_function *)library_function(TRY_LOCK_SLOW))(handle);
    if (isLocked && __tsan_acquire) __tsan_acquire(handle);
    return isLocked;
}

SWIFT void unlock_slow(SELF void *handle) __asm__(UNLOCK_SLOW);
SWIFT void unlock_slow(SELF void *handle) {
    if (__tsan_release) __tsan_release(handle);
    ((unlock_function *)library_function(UNLOCK_SLOW))(handle);
}
