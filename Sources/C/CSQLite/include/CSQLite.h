#pragma once

/// Turns off SQLite's statistics of its memory, which take a lock of the whole process for every allocation. Has no effect once SQLite is
/// initialized, as it is when a database was opened.
void waku_sqlite_disable_memory_statistics(void);

/// Defensive mode, no trust in functions of the schema, no triggers and no views, for a connection (`sqlite3 *`). Returns SQLite's code.
int waku_sqlite_harden(void *connection);

/// Limits rows and values to `length` bytes, tables to 100 columns, expressions to a depth of 100 and statements to 100,000 operations, for a
/// connection to a file from elsewhere.
void waku_sqlite_limit(void *connection, int length);
