#include "CSQLite.h"

#include <sqlite3.h>

// sqlite3_config and sqlite3_db_config are variadic, which Swift cannot call.

void waku_sqlite_disable_memory_statistics(void) { sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); }

int waku_sqlite_distrust(void *connection, int length) {
  static const int off[] = {SQLITE_DBCONFIG_TRUSTED_SCHEMA, SQLITE_DBCONFIG_ENABLE_TRIGGER, SQLITE_DBCONFIG_ENABLE_VIEW};
  int status = sqlite3_db_config(connection, SQLITE_DBCONFIG_DEFENSIVE, 1, (int *)0);
  for (unsigned i = 0; i < sizeof off / sizeof *off; i++)
    if (status == SQLITE_OK) status = sqlite3_db_config(connection, off[i], 0, (int *)0);
  sqlite3_limit(connection, SQLITE_LIMIT_LENGTH, length);
  sqlite3_limit(connection, SQLITE_LIMIT_ATTACHED, 0);
  sqlite3_limit(connection, SQLITE_LIMIT_EXPR_DEPTH, 100);
  sqlite3_limit(connection, SQLITE_LIMIT_VDBE_OP, 100000);
  return status;
}
