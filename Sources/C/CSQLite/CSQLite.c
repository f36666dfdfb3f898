#include "CSQLite.h"

#include <sqlite3.h>

// sqlite3_config and sqlite3_db_config are variadic, which Swift cannot call.
void waku_sqlite_disable_memory_statistics(void) { sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); }

int waku_sqlite_harden(void *connection) {
    const struct { int option, value; } settings[] = {
        {SQLITE_DBCONFIG_DEFENSIVE, 1},
        {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
        {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
        {SQLITE_DBCONFIG_ENABLE_VIEW, 0},
    };
    for (unsigned i = 0; i < sizeof settings / sizeof *settings; i++) {
        int is = -1;
        int code = sqlite3_db_config(connection, settings[i].option, settings[i].value, &is);
        if (code != SQLITE_OK) return code;
        if (is != settings[i].value) return SQLITE_ERROR;
    }
    return SQLITE_OK;
}

void waku_sqlite_limit(void *connection, int length) {
    sqlite3_limit(connection, SQLITE_LIMIT_LENGTH, length);
    sqlite3_limit(connection, SQLITE_LIMIT_COLUMN, 100);
    sqlite3_limit(connection, SQLITE_LIMIT_EXPR_DEPTH, 100);
    sqlite3_limit(connection, SQLITE_LIMIT_VDBE_OP, 100000);
    sqlite3_limit(connection, SQLITE_LIMIT_FUNCTION_ARG, 16);
    sqlite3_limit(connection, SQLITE_LIMIT_ATTACHED, 0);
    sqlite3_limit(connection, SQLITE_LIMIT_TRIGGER_DEPTH, 1);
    sqlite3_limit(connection, SQLITE_LIMIT_WORKER_THREADS, 0);
}
