// Tells the thread sanitizer what it can't see of Swift's libraries, which are not instrumented. Preloaded by `Deploy/dev/sanitize thread`. The functions
// here stand before the libraries', call them, and say what they did. They hide nothing: see contended-mutex.swift, early-resume.swift and
// real-race.swift.
//
// Synchronization.Mutex: the quick way through the mutex is compiled into whoever uses it, and so instrumented. A mutex that is contended goes the
// slow way, in the standard library: the sanitizer never learns that the thread has the lock, and reports a race on whatever it protects.

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

// A continuation that is resumed before its task suspends: the task goes on at once, and the sanitizer never learns that the value was given before
// it is used. (A task that is suspended is enqueued, which the runtime tells.) One that is resumed just after the call of __tsan_acquire is still
// reported.

#define RESUME "swift_continuation_resume"
#define RESUME_THROWING "swift_continuation_throwingResume"
#define RESUME_WITH_ERROR "swift_continuation_throwingResumeWithError"
#define AWAIT "swift_continuation_await"

#define SWIFT_ASYNC __attribute__((swiftasynccall))

typedef SWIFT void resume_function(void *task);
typedef SWIFT void resume_with_error_function(void *task, void *error);
typedef SWIFT_ASYNC void await_function(void *continuation);

__attribute__((weak)) SWIFT void *swift_task_getCurrent(void);

SWIFT void swift_continuation_resume(void *task) {
    if (__tsan_release) __tsan_release(task);
    ((resume_function *)library_function(RESUME))(task);
}

SWIFT void swift_continuation_throwingResume(void *task) {
    if (__tsan_release) __tsan_release(task);
    ((resume_function *)library_function(RESUME_THROWING))(task);
}

SWIFT void swift_continuation_throwingResumeWithError(void *task, void *error) {
    if (__tsan_release) __tsan_release(task);
    ((resume_with_error_function *)library_function(RESUME_WITH_ERROR))(task, error);
}

SWIFT_ASYNC void swift_continuation_await(void *continuation) {
    if (__tsan_acquire) __tsan_acquire(swift_task_getCurrent());
    __attribute__((musttail)) return ((await_function *)library_function(AWAIT))(continuation);
}

// A checked continuation is resumed and awaited inside the library, past the functions above. Its reference is to an object that has the task after
// its header; it is null once the continuation was resumed. The task frees the frame of the call when it returns.

#define CHECKED_RESUME "$sScC6resume9returningyxn_tF"
#define CHECKED_RESUME_THROWING "$sScC6resume8throwingyq_n_tF"
#define DEALLOC "swift_task_dealloc"

typedef SWIFT void checked_resume_function(void *value, void *type, SELF void ***continuation);
typedef SWIFT void dealloc_function(void *frame);

static void release_task(void ***continuation) {
    void *task = (*continuation)[2];
    if (task && __tsan_release) __tsan_release(task);
}

SWIFT void checked_resume(void *value, void *type, SELF void ***continuation) __asm__(CHECKED_RESUME);
SWIFT void checked_resume(void *value, void *type, SELF void ***continuation) {
    release_task(continuation);
    ((checked_resume_function *)library_function(CHECKED_RESUME))(value, type, continuation);
}

SWIFT void checked_resume_throwing(void *error, void *type, SELF void ***continuation) __asm__(CHECKED_RESUME_THROWING);
SWIFT void checked_resume_throwing(void *error, void *type, SELF void ***continuation) {
    release_task(continuation);
    ((checked_resume_function *)library_function(CHECKED_RESUME_THROWING))(error, type, continuation);
}

SWIFT void swift_task_dealloc(void *frame) {
    // Looked up once: each asynchronous call ends here.
    static dealloc_function *_Atomic original;
    if (!original) original = (dealloc_function *)library_function(DEALLOC);
    if (__tsan_acquire) __tsan_acquire(swift_task_getCurrent());
    original(frame);
}
