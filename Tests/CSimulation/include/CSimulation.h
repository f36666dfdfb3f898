/// Puts a whole process in virtual time, on one thread. For tests alone.
///
/// A program that is linked with this defines functions of the C library, of OpenSSL and of Dispatch, and the dynamic linker prefers a program's
/// definition to a library's: for clocks, sleeps, random numbers, `dispatch_async`, `dispatch_sync`, `dispatch_after` and `dispatch_after_f`. The tasks of Swift come by its hook for
/// the global executor; since Swift 6.2 `Task.sleep` calls `dispatch_after_f` and not the hooks for delays.
///
/// Nothing changes until simulation_begin(), except that memory has other addresses if SIMULATION_DISTURBANCE is set to a number other than 0.
#ifndef C_SIMULATION_H
#define C_SIMULATION_H

#include <stdint.h>

#pragma clang assume_nonnull begin

/// The program that decides when something runs.
typedef struct {
    /// A task can run: to be passed to simulation_run_job() once.
    void (*task_ready)(void *job);
    /// A block was submitted to a queue: to be passed to simulation_run_block() once, in the order of the queue.
    void (*block_submitted)(void *queue, void *block);
    /// `function(context)` is to be called at this time.
    void (*timer_set)(int64_t time, void (*function)(void *_Nullable context), void *_Nullable context);
    /// A caller waits for all blocks of a queue: to be run before this returns.
    void (*queue_awaited)(void *queue);
} simulation_scheduler;

/// Runs the program again, without randomized addresses and hash seeds, and without other variables in its environment: then equal seeds give
/// equal runs. Returns in the second run.
void simulation_prepare(char *const _Nullable arguments[_Nonnull]);

/// From now on time stands still unless it is set, and all random numbers follow from the seed.
void simulation_begin(uint64_t seed, simulation_scheduler scheduler);

/// Nanoseconds since an arbitrary start.
int64_t simulation_time(void);
void simulation_set_time(int64_t time);

/// The wall clock's time minus simulation_time().
void simulation_set_wall_offset(int64_t offset);

void simulation_run_job(void *job);
void simulation_run_block(void *block);

/// The label of a queue.
const char *_Nullable simulation_label(void *queue);

/// The processor's time of this process, which is not simulated.
int64_t simulation_processor_time(void);

#pragma clang assume_nonnull end

#endif
