#pragma once

/// Turns off SQLite's statistics of its memory, which take a lock of the whole process for every allocation. Has no effect once SQLite is
/// initialized, as it is when a database was opened.
void waku_sqlite_disable_memory_statistics(void);

/// Prepares a connection for reading a database that somebody else made: its schema can't call functions with side effects, run triggers, read
/// views or attach other databases, and no value is larger than `length` bytes.
///
/// - Returns: an SQLite result code.
int waku_sqlite_distrust(void *connection, int length);
