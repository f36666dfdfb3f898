#include "CFaultVFS.h"

#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RULE_LIMIT = 8, SECTOR = 512 };

/// What a write replaced.
typedef struct undo {
    struct undo *earlier;
    int file;
    int64_t offset;
    int byte_count;
    unsigned char bytes[];
} undo;

struct fault_plan {
    struct fault_plan *next;
    char *folder;
    size_t folder_length;
    fault_rule rules[RULE_LIMIT];
    int rule_count;
    uint64_t random;
    int64_t hits;
    int is_killed;
    int is_tracking;
    /// Counts the clearings: what stalls waits for the next.
    int64_t cleared;
    undo *unsynced;
    /// Of the files that were written to, by what they are.
    char *paths[FAULT_WAL + 1];
};

typedef struct {
    sqlite3_file base;
    fault_plan *plan;
    int file;
    /// The system's file, behind this.
    sqlite3_file real[];
} fault_file;

static pthread_once_t install_once = PTHREAD_ONCE_INIT;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t was_cleared = PTHREAD_COND_INITIALIZER;
static fault_plan *plans;
static sqlite3_vfs *real_vfs;
static sqlite3_vfs fault_vfs;

/// SplitMix64.
static uint64_t mixed(uint64_t value) {
    value += 0x9E3779B97F4A7C15u;
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9u;
    value = (value ^ value >> 27) * 0x94D049BB133111EBu;
    return value ^ value >> 31;
}

static fault_plan *plan_of(const char *path) {
    pthread_mutex_lock(&mutex);
    fault_plan *plan = path ? plans : NULL;
    while (plan && (strncmp(path, plan->folder, plan->folder_length) != 0 || path[plan->folder_length] != '/')) plan = plan->next;
    pthread_mutex_unlock(&mutex);
    return plan;
}

/// What a call of a killed process returns: never a rule's code.
enum { KILLED = SQLITE_IOERR };

/// SQLITE_OK when the call may go on.
///
/// - operation: 0 for one that only fails in a killed process.
static int fault(fault_plan *plan, int operation, int file) {
    if (!plan || !file) return SQLITE_OK;
    pthread_mutex_lock(&mutex);
    int code = plan->is_killed ? KILLED : SQLITE_OK;
    for (int index = 0; index < plan->rule_count && code == SQLITE_OK; index++) {
        fault_rule *rule = &plan->rules[index];
        if (!(rule->operations & operation) || !(rule->files & file) || rule->count == 0) continue;
        if (rule->after > 0) {
            rule->after--;
            continue;
        }
        plan->random = mixed(plan->random);
        if ((int)(plan->random % 1000) >= rule->permille) continue;
        if (rule->count > 0) rule->count--;
        plan->hits++;
        code = rule->code;
    }
    if (code == FAULT_STALL) {
        int64_t before = plan->cleared;
        while (plan->cleared == before) pthread_cond_wait(&was_cleared, &mutex);
        code = SQLITE_OK;
    }
    pthread_mutex_unlock(&mutex);
    return code;
}

// MARK: What is not synced

static void remember(fault_file *file, int64_t offset, int byte_count) {
    undo *entry = malloc(sizeof(undo) + (size_t)byte_count);
    entry->file = file->file;
    entry->offset = offset;
    entry->byte_count = byte_count;
    // What lies beyond the end reads as zeros.
    file->real->pMethods->xRead(file->real, entry->bytes, byte_count, offset);
    pthread_mutex_lock(&mutex);
    entry->earlier = file->plan->unsynced;
    file->plan->unsynced = entry;
    pthread_mutex_unlock(&mutex);
}

/// - file: 0 for all.
static void forget(fault_plan *plan, int file) {
    undo **link = &plan->unsynced;
    while (*link) {
        undo *entry = *link;
        if (file && entry->file != file) {
            link = &entry->earlier;
            continue;
        }
        *link = entry->earlier;
        free(entry);
    }
}

void fault_plan_cut_power(fault_plan *plan) {
    pthread_mutex_lock(&mutex);
    uint64_t seed = plan->random = mixed(plan->random);
    for (int file = FAULT_DATABASE; file <= FAULT_WAL; file++) {
        int descriptor = plan->paths[file] ? open(plan->paths[file], O_RDWR | O_CLOEXEC) : -1;
        if (descriptor < 0) continue;
        uint64_t count = 0;
        for (undo *entry = plan->unsynced; entry; entry = entry->earlier) count += entry->file == file;
        uint64_t age = 0;
        for (undo *entry = plan->unsynced; entry; entry = entry->earlier) {
            if (entry->file != file) continue;
            int64_t end = entry->offset + entry->byte_count;
            for (int64_t start = entry->offset; start < end;) {
                int64_t sector = start / SECTOR;
                int64_t stop = (sector + 1) * SECTOR < end ? (sector + 1) * SECTOR : end;
                // Each sector has lost its last writes, as many as chance says.
                if (age < mixed(seed ^ (uint64_t)sector * 2 ^ (uint64_t)file) % (count + 1)) {
                    ssize_t written = pwrite(descriptor, entry->bytes + (start - entry->offset), (size_t)(stop - start), start);
                    if (written < 0) abort();
                }
                start = stop;
            }
            age++;
        }
        close(descriptor);
    }
    forget(plan, 0);
    pthread_mutex_unlock(&mutex);
}

// MARK: Files

static int file_close(sqlite3_file *base) {
    fault_file *file = (fault_file *)base;
    return file->real->pMethods->xClose(file->real);
}

static int file_read(sqlite3_file *base, void *bytes, int count, sqlite3_int64 offset) {
    fault_file *file = (fault_file *)base;
    int code = fault(file->plan, FAULT_READ, file->file);
    return code == SQLITE_OK ? file->real->pMethods->xRead(file->real, bytes, count, offset) : code;
}

static int file_write(sqlite3_file *base, const void *bytes, int count, sqlite3_int64 offset) {
    fault_file *file = (fault_file *)base;
    int code = fault(file->plan, FAULT_WRITE, file->file);
    if (code == KILLED) return code;
    if (code != SQLITE_OK) count /= 2;
    if (file->plan && file->plan->is_tracking) remember(file, offset, count);
    int result = file->real->pMethods->xWrite(file->real, bytes, count, offset);
    return code == SQLITE_OK ? result : code;
}

static int file_truncate(sqlite3_file *base, sqlite3_int64 size) {
    fault_file *file = (fault_file *)base;
    int code = fault(file->plan, 0, file->file);
    return code == SQLITE_OK ? file->real->pMethods->xTruncate(file->real, size) : code;
}

static int file_sync(sqlite3_file *base, int flags) {
    fault_file *file = (fault_file *)base;
    int code = fault(file->plan, FAULT_SYNC, file->file);
    if (code != SQLITE_OK) return code;
    if (!file->plan || !file->plan->is_tracking) return file->real->pMethods->xSync(file->real, flags);
    pthread_mutex_lock(&mutex);
    forget(file->plan, file->file);
    pthread_mutex_unlock(&mutex);
    return SQLITE_OK;
}

static int file_size(sqlite3_file *base, sqlite3_int64 *size) {
    fault_file *file = (fault_file *)base;
    return file->real->pMethods->xFileSize(file->real, size);
}

static int file_lock(sqlite3_file *base, int lock) {
    fault_file *file = (fault_file *)base;
    int code = lock > SQLITE_LOCK_SHARED ? fault(file->plan, FAULT_LOCK, file->file) : SQLITE_OK;
    return code == SQLITE_OK ? file->real->pMethods->xLock(file->real, lock) : code;
}

static int file_unlock(sqlite3_file *base, int lock) {
    fault_file *file = (fault_file *)base;
    return file->real->pMethods->xUnlock(file->real, lock);
}

static int file_check_reserved(sqlite3_file *base, int *result) {
    fault_file *file = (fault_file *)base;
    return file->real->pMethods->xCheckReservedLock(file->real, result);
}

static int file_control(sqlite3_file *base, int operation, void *argument) {
    fault_file *file = (fault_file *)base;
    return file->real->pMethods->xFileControl(file->real, operation, argument);
}

static int file_sector_size(sqlite3_file *base) {
    fault_file *file = (fault_file *)base;
    return file->real->pMethods->xSectorSize(file->real);
}

static int file_characteristics(sqlite3_file *base) {
    fault_file *file = (fault_file *)base;
    return file->real->pMethods->xDeviceCharacteristics(file->real);
}

static int file_shm_map(sqlite3_file *base, int page, int size, int extend, void volatile **memory) {
    fault_file *file = (fault_file *)base;
    return file->real->pMethods->xShmMap(file->real, page, size, extend, memory);
}

static int file_shm_lock(sqlite3_file *base, int offset, int count, int flags) {
    fault_file *file = (fault_file *)base;
    int isTaken = (flags & SQLITE_SHM_EXCLUSIVE) && (flags & SQLITE_SHM_LOCK);
    int code = isTaken ? fault(file->plan, FAULT_LOCK, file->file) : SQLITE_OK;
    return code == SQLITE_OK ? file->real->pMethods->xShmLock(file->real, offset, count, flags) : code;
}

static void file_shm_barrier(sqlite3_file *base) {
    fault_file *file = (fault_file *)base;
    file->real->pMethods->xShmBarrier(file->real);
}

static int file_shm_unmap(sqlite3_file *base, int mustDelete) {
    fault_file *file = (fault_file *)base;
    return file->real->pMethods->xShmUnmap(file->real, mustDelete);
}

/// Version 2: nothing is mapped into memory, so that every read and write comes by here.
static const sqlite3_io_methods methods = {
    2,           file_close,   file_read,           file_write,   file_truncate,    file_sync,
    file_size,   file_lock,    file_unlock,         file_check_reserved, file_control, file_sector_size,
    file_characteristics, file_shm_map, file_shm_lock, file_shm_barrier, file_shm_unmap, NULL, NULL,
};

// MARK: VFS

static int vfs_open(sqlite3_vfs *vfs, const char *path, sqlite3_file *base, int flags, int *out_flags) {
    (void)vfs;
    fault_file *file = (fault_file *)base;
    file->base.pMethods = NULL;
    file->plan = plan_of(path);
    file->file = flags & SQLITE_OPEN_MAIN_DB ? FAULT_DATABASE : flags & SQLITE_OPEN_WAL ? FAULT_WAL : 0;
    int code = fault(file->plan, 0, file->file);
    if (code != SQLITE_OK) return code;
    code = real_vfs->xOpen(real_vfs, path, file->real, flags, out_flags);
    if (!file->real->pMethods) return code;
    file->base.pMethods = &methods;
    if (file->plan && file->file) {
        pthread_mutex_lock(&mutex);
        if (!file->plan->paths[file->file]) file->plan->paths[file->file] = strdup(path);
        pthread_mutex_unlock(&mutex);
    }
    return code;
}

static int vfs_delete(sqlite3_vfs *vfs, const char *path, int must_sync) {
    (void)vfs;
    if (fault(plan_of(path), 0, FAULT_DATABASE | FAULT_WAL) == KILLED) return SQLITE_IOERR_DELETE;
    return real_vfs->xDelete(real_vfs, path, must_sync);
}

static void install(void) {
    real_vfs = sqlite3_vfs_find(NULL);
    // Whatever takes no file goes to the system's functions directly: none of them looks at its first argument's identity.
    fault_vfs = *real_vfs;
    fault_vfs.pNext = NULL;
    fault_vfs.zName = "fault";
    fault_vfs.szOsFile = (int)sizeof(fault_file) + real_vfs->szOsFile;
    fault_vfs.xOpen = vfs_open;
    fault_vfs.xDelete = vfs_delete;
    sqlite3_vfs_register(&fault_vfs, 1);
}

// MARK: Plans

fault_plan *fault_plan_create(const char *folder) {
    pthread_once(&install_once, install);
    fault_plan *plan = calloc(1, sizeof(fault_plan));
    plan->folder = strdup(folder);
    plan->folder_length = strlen(folder);
    pthread_mutex_lock(&mutex);
    plan->next = plans;
    plans = plan;
    pthread_mutex_unlock(&mutex);
    return plan;
}

void fault_plan_add(fault_plan *plan, fault_rule rule) {
    pthread_mutex_lock(&mutex);
    if (plan->rule_count == RULE_LIMIT) abort();
    plan->rules[plan->rule_count++] = rule;
    pthread_mutex_unlock(&mutex);
}

void fault_plan_clear(fault_plan *plan) {
    pthread_mutex_lock(&mutex);
    plan->rule_count = 0;
    plan->cleared++;
    pthread_cond_broadcast(&was_cleared);
    pthread_mutex_unlock(&mutex);
}

void fault_plan_seed(fault_plan *plan, uint64_t seed) {
    pthread_mutex_lock(&mutex);
    plan->random = seed;
    pthread_mutex_unlock(&mutex);
}

int64_t fault_plan_hits(fault_plan *plan) {
    pthread_mutex_lock(&mutex);
    int64_t hits = plan->hits;
    pthread_mutex_unlock(&mutex);
    return hits;
}

static void set(fault_plan *plan, int *flag, int value) {
    (void)plan;
    pthread_mutex_lock(&mutex);
    *flag = value;
    pthread_mutex_unlock(&mutex);
}

void fault_plan_track(fault_plan *plan) { set(plan, &plan->is_tracking, 1); }
void fault_plan_kill(fault_plan *plan) { set(plan, &plan->is_killed, 1); }
void fault_plan_revive(fault_plan *plan) { set(plan, &plan->is_killed, 0); }
