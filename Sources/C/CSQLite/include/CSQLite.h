#pragma once

/// Turns off SQLite's statistics of its memory, which take a lock of the whole process for every allocation. Has no effect once SQLite is
/// initialized, as it is when a database was opened.
void waku_sqlite_disable_memory_statistics(void);
