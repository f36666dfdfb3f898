/// A SQLite VFS that passes everything on to the system's, and fails where a test says so. For tests alone.
///
/// It becomes the default of the process, since whoever opens a database need not know of it. Only files in a folder that has a plan are
/// touched. A plan is made before its database is opened, and stays for the life of the process.
#ifndef C_FAULT_VFS_H
#define C_FAULT_VFS_H

#include <stdint.h>

enum {
    FAULT_READ = 1,
    FAULT_WRITE = 2,
    FAULT_SYNC = 4,
    /// Exclusive ones alone: of the file, and of the WAL's index.
    FAULT_LOCK = 8,
};

enum {
    FAULT_DATABASE = 1,
    FAULT_WAL = 2,
};

enum {
    /// Not a result code: the call does not return until the plan is cleared, and then succeeds.
    FAULT_STALL = -2,
};

typedef struct fault_plan fault_plan;

/// What is to fail, and how.
typedef struct {
    /// Of FAULT_READ, FAULT_WRITE, …
    int operations;
    /// Of FAULT_DATABASE, FAULT_WAL.
    int files;
    /// What the call returns: a result code of SQLite's, or FAULT_STALL. A write that fails has written half.
    int code;
    /// Calls that succeed before.
    int64_t after;
    /// Calls that fail then; below 0: all.
    int64_t count;
    /// How many of 1000 of these calls fail, at random.
    int permille;
} fault_rule;

/// For the files directly in a folder.
fault_plan *fault_plan_create(const char *folder);

/// At most 8 rules at once; a call fails by the first that fits.
void fault_plan_add(fault_plan *plan, fault_rule rule);

/// No rule is left, and what stalls goes on.
void fault_plan_clear(fault_plan *plan);

/// What is random from now on.
void fault_plan_seed(fault_plan *plan, uint64_t seed);

/// How many calls failed by a rule.
int64_t fault_plan_hits(fault_plan *plan);

/// From now on writes are remembered until they are synced, and a sync does no more than forget them: see fault_plan_cut_power().
void fault_plan_track(fault_plan *plan);

/// Every call fails from now on, as it is when the process is killed: nothing reaches a file any more.
void fault_plan_kill(fault_plan *plan);

/// To be called while killed, with the database closed. Takes back what was not synced: of each sector (512 bytes) any number of the last
/// writes, at random.
void fault_plan_cut_power(fault_plan *plan);

/// Calls work again.
void fault_plan_revive(fault_plan *plan);

#endif
